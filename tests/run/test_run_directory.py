import errno
import fcntl
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from atari_dqn.errors import DamagedError, UserError
from atari_dqn.files.whole_directory import whole_directory
from atari_dqn.run.directory import RunDirectory, default_run_dir

SPEC = 'track = "A"\ngame = "pong"\n'


def create(path: Path) -> RunDirectory:
    return RunDirectory.create(path, SPEC, "d1g3st", {"versions": {"python": "3.11"}})


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk with 16 kB, so that a larger spec does not fit."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", place], capture_output=True)
    if mounted.returncode:
        pytest.skip("mounting needs root")
    yield place
    subprocess.run(["umount", place], check=True)


def test_new_run_holds_spec_provenance_and_a_place_for_checkpoints(tmp_path: Path) -> None:
    run = create(tmp_path / "run")
    assert sorted(path.name for path in run.path.iterdir()) == ["checkpoints", "provenance.json", "spec.toml"]


def test_spec_is_written_byte_for_byte(tmp_path: Path) -> None:
    assert create(tmp_path / "run").spec.read_bytes() == SPEC.encode()


def test_provenance_records_both_digests_of_the_spec(tmp_path: Path) -> None:
    record = json.loads(create(tmp_path / "run").provenance.read_text())
    assert record == {
        "versions": {"python": "3.11"},
        "spec": {
            "digest": "d1g3st",
            "toml_sha256": "c594066ff698d53c9e401628650672b315f5ff938045d1c67dbae7cc1beb49dc",
        },
    }


def test_missing_parents_are_made(tmp_path: Path) -> None:
    assert create(tmp_path / "a" / "b" / "run").path.is_dir()


def test_directory_can_be_read_by_others_as_the_umask_allows(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    assert create(tmp_path / "run").path.stat().st_mode == (tmp_path / "plain").stat().st_mode


@pytest.mark.parametrize("content", [{}, {"notes.txt": "mine"}], ids=["empty", "not empty"])
def test_existing_directory_is_refused_and_left_alone(tmp_path: Path, content: dict[str, str]) -> None:
    path = tmp_path / "run"
    path.mkdir()
    for name, text in content.items():
        (path / name).write_text(text)
    with pytest.raises(UserError, match="never overwritten; name another directory with --run-dir"):
        create(path)
    assert {file.name: file.read_text() for file in path.iterdir()} == content


def test_existing_run_is_refused_with_the_command_that_resumes_it(tmp_path: Path) -> None:
    create(tmp_path / "run")
    with pytest.raises(UserError, match=f"`dqn resume {tmp_path / 'run'}`, or name another directory"):
        create(tmp_path / "run")


def test_link_to_nowhere_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "run").symlink_to(tmp_path / "absent")
    with pytest.raises(UserError, match="exists"):
        create(tmp_path / "run")
    assert (tmp_path / "run").is_symlink()


def test_place_inside_a_file_is_one_clear_message(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(UserError, match="file is a file; name another directory"):
        create(tmp_path / "file" / "run")


def test_name_with_nul_is_one_clear_message(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="NUL"):
        create(tmp_path / "a\0b")


def test_name_too_long_is_one_clear_message(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="file name too long; choose a shorter name"):
        create(tmp_path / ("a" * 300))


def test_failure_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_space(path: Path, data: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("atari_dqn.run.directory.write_durably", no_space)
    with pytest.raises(UserError, match="no space left on device"):
        create(tmp_path / "outputs" / "run")
    assert list(tmp_path.iterdir()) == []


def test_full_disk_leaves_nothing_behind(full_disk: Path) -> None:
    with pytest.raises(UserError, match="no space left on device; free space on that disk"):
        RunDirectory.create(full_disk / "outputs" / "run", "#" * 100_000, "digest", {})
    assert list(full_disk.iterdir()) == []


@pytest.mark.parametrize("name", ["step_000000001", "latest"])
def test_checkpoint_is_refused_with_its_run_and_the_option_that_names_it(tmp_path: Path, name: str) -> None:
    checkpoints = create(tmp_path / "run").checkpoints
    (checkpoints / "step_000000001").mkdir()
    (checkpoints / "step_000000001" / "manifest.json").write_text("{}")
    (checkpoints / "latest").symlink_to("step_000000001")
    with pytest.raises(UserError) as refused:
        RunDirectory.open(checkpoints / name)
    assert str(refused.value).splitlines() == [
        f"{checkpoints / name} is a checkpoint; expected its run: {tmp_path / 'run'}",
        "`dqn resume` and `dqn verify` start from a checkpoint with --checkpoint step_000000001",
    ]


def test_run_that_was_created_opens(tmp_path: Path) -> None:
    create(tmp_path / "run")
    assert RunDirectory.open(tmp_path / "run").spec.read_text() == SPEC


@pytest.mark.parametrize("make", [lambda path: None, Path.mkdir, lambda path: path.write_text("x")])
def test_what_is_no_run_directory_is_a_user_error(tmp_path: Path, make: object) -> None:
    make(tmp_path / "other")  # type: ignore[operator]
    with pytest.raises(UserError, match="expected a directory created by `dqn train`"):
        RunDirectory.open(tmp_path / "other")


@pytest.mark.parametrize("name", ["spec.toml", "provenance.json"])
def test_missing_file_is_damaged(tmp_path: Path, name: str) -> None:
    (create(tmp_path / "run").path / name).unlink()
    with pytest.raises(DamagedError, match=f"{name} missing"):
        RunDirectory.open(tmp_path / "run")


def test_altered_spec_is_damaged(tmp_path: Path) -> None:
    create(tmp_path / "run").spec.write_text(SPEC + "\n")
    with pytest.raises(DamagedError, match=r"spec\.toml: was changed after the run began"):
        RunDirectory.open(tmp_path / "run")


@pytest.mark.parametrize("text", ["{", "[]", '{"spec": 3}', "[" * 100_000, "\xff"])
def test_provenance_that_is_no_record_is_damaged(tmp_path: Path, text: str) -> None:
    create(tmp_path / "run").provenance.write_text(text, encoding="latin-1")
    with pytest.raises(DamagedError, match=r"provenance\.json"):
        RunDirectory.open(tmp_path / "run")


def test_default_directory_is_named_after_spec_and_seed() -> None:
    assert default_run_dir("pong_trackA", 3) == Path("outputs/pong_trackA_seed3")


def left_over(folder: Path, name: str = ".run.0badcafe.partial") -> Path:
    """Create the files that a process leaves that was killed while it created `folder/run`."""
    path = folder / name
    (path / "checkpoints").mkdir(parents=True)
    (path / "spec.toml").write_text("track =")
    return path


def test_next_start_removes_what_a_killed_one_has_left(tmp_path: Path) -> None:
    left_over(tmp_path)
    RunDirectory.create(tmp_path / "run", "", "0" * 64, {})
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_start_leaves_the_directory_of_a_living_one(tmp_path: Path) -> None:
    path = left_over(tmp_path)
    descriptor = os.open(path, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    RunDirectory.create(tmp_path / "run", "", "0" * 64, {})
    os.close(descriptor)
    assert path.exists()


def test_directory_that_cannot_be_locked_is_an_error_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.flock", no_locks)
    with pytest.raises(OSError, match="No locks available"), whole_directory(tmp_path / "run", holds=()):
        pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", [".other.0badcafe.partial", ".run.partial", ".run.0badcafg.partial"])
def test_start_leaves_directories_of_other_names(tmp_path: Path, name: str) -> None:
    path = left_over(tmp_path, name)
    RunDirectory.create(tmp_path / "run", "", "0" * 64, {})
    assert path.exists()


def test_start_leaves_a_directory_that_holds_something_of_another(tmp_path: Path) -> None:
    path = left_over(tmp_path)
    (path / "letter.txt").touch()
    RunDirectory.create(tmp_path / "run", "", "0" * 64, {})
    assert (path / "letter.txt").exists()


def test_names_of_folders_made_for_a_directory_are_on_disk_before_it_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[Path] = []
    monkeypatch.setattr("atari_dqn.files.whole_directory.fsync_directory", flushed.append)
    with whole_directory(tmp_path / "outputs" / "pong" / "run", holds=()):
        assert set(flushed) == {tmp_path, tmp_path / "outputs"}


def test_start_in_a_folder_that_is_there_flushes_none_above_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[Path] = []
    monkeypatch.setattr("atari_dqn.files.whole_directory.fsync_directory", flushed.append)
    with whole_directory(tmp_path / "run", holds=()):
        assert flushed == []


def test_folders_in_a_directory_are_on_disk_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[Path] = []
    monkeypatch.setattr("atari_dqn.files.whole_directory.fsync_directory", flushed.append)
    with whole_directory(tmp_path / "run", holds=("videos",)) as partial:
        (partial / "videos" / "old").mkdir(parents=True)
    *before, last = flushed
    assert before == [partial, partial / "videos", partial / "videos" / "old"]
    assert last == tmp_path


def test_directory_that_is_being_made_is_locked(tmp_path: Path) -> None:
    with whole_directory(tmp_path / "run", holds=()) as partial:
        descriptor = os.open(partial, os.O_RDONLY)
        with pytest.raises(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(descriptor)
