import errno
import os
import stat
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from atari_dqn.errors import UserError
from atari_dqn.files.atomic import (
    exists,
    is_file,
    json_document,
    open_regular,
    plain,
    prepare_folder,
    read_regular,
    sha256_of_file,
    write_atomically,
    write_json_atomically,
)
from atari_dqn.files.failures import reading, writing
from atari_dqn.run.sweep.failures import KIND_OF_EXIT


def test_atomic_write_replaces_what_was_there(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"old")
    write_atomically(tmp_path / "f", b"new")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("f", b"new")]


def test_failed_write_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def torn(path: Path, data: bytes) -> None:
        path.write_bytes(data[:1])
        raise OSError(28, "No space left on device")

    (tmp_path / "f").write_bytes(b"old")
    monkeypatch.setattr("atari_dqn.files.atomic.write_durably", torn)
    with pytest.raises(UserError, match=r"f: no space left on device; free space"):
        write_atomically(tmp_path / "f", b"new")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("f", b"old")]


@pytest.mark.parametrize("convert", [reading, writing])
@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE])
def test_too_many_open_files_are_no_fault_of_the_path(
    number: int, convert: Callable[[Path], AbstractContextManager[None]]
) -> None:
    expected = pytest.raises(UserError, match=r"f: too many open files.*; raise the limit .*ulimit -n")
    with expected, convert(Path("f")):
        raise OSError(number, os.strerror(number))


@pytest.mark.parametrize("convert", [reading, writing])
@pytest.mark.parametrize("number", [errno.EIO, errno.ESTALE, errno.ENOMEM, errno.EMFILE, errno.ETIMEDOUT])
def test_an_error_that_may_pass_has_an_exit_code_after_which_a_sweep_tries_again(
    number: int, convert: Callable[[Path], AbstractContextManager[None]]
) -> None:
    with pytest.raises(UserError) as raised, convert(Path("f")):
        raise OSError(number, os.strerror(number))
    assert raised.value.exit_code == 5
    assert raised.value.exit_code not in KIND_OF_EXIT


def fail_to_flush(kind: Callable[[int], bool], number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have fsync fail for files or directories."""
    fsync = os.fsync

    def failing(descriptor: int) -> None:
        if kind(os.fstat(descriptor).st_mode):
            raise OSError(number, os.strerror(number))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", failing)


@pytest.mark.parametrize("number", [errno.EINVAL, errno.EBADF, errno.ENOTSUP])
def test_file_is_written_where_directories_cannot_be_flushed(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_to_flush(stat.S_ISDIR, number, monkeypatch)
    write_atomically(tmp_path / "f", b"new")
    assert (tmp_path / "f").read_bytes() == b"new"


@pytest.mark.parametrize(("kind", "number"), [(stat.S_ISDIR, errno.EIO), (stat.S_ISREG, errno.EINVAL)])
def test_other_failures_to_flush_are_errors(
    kind: Callable[[int], bool], number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_to_flush(kind, number, monkeypatch)
    with pytest.raises(UserError, match="cannot write"):
        write_atomically(tmp_path / "f", b"new")


def test_folder_in_which_no_file_can_be_created_is_the_one_that_the_error_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(Path, "touch", refuse)
    with pytest.raises(UserError, match=f"cannot write {tmp_path}: permission denied; "):
        prepare_folder(tmp_path)


def test_json_document_ends_with_a_line_end(tmp_path: Path) -> None:
    write_json_atomically(tmp_path / "f.json", {"mean_return": 20.5})
    assert (tmp_path / "f.json").read_text() == '{\n  "mean_return": 20.5\n}\n'


def test_values_json_does_not_know_become_words() -> None:
    assert plain({"a": float("nan"), "b": (float("-inf"), True, None)}) == {
        "a": "nan",
        "b": ["-inf", True, None],
    }


def test_path_that_is_not_utf8_is_text_that_json_can_hold() -> None:
    assert json_document({"path": "run_\udcff"}) == b'{\n  "path": "run_?"\n}\n'


def test_sha256_is_of_the_bytes(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"abc")
    assert (
        sha256_of_file(tmp_path / "f") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    )


def test_a_regular_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"abc")
    assert read_regular(tmp_path / "f", most_bytes=3) == b"abc"


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "f")
    with pytest.raises(OSError, match="is not a regular file"):
        open_regular(tmp_path / "f")


def test_a_directory_is_refused_as_a_file(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="is a directory"):
        open_regular(tmp_path)


def test_a_file_larger_than_allowed_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"abcd")
    with pytest.raises(OSError, match="is larger than 3 bytes"):
        read_regular(tmp_path / "f", most_bytes=3)


@pytest.mark.fault("H06")
@pytest.mark.parametrize(
    ("error", "named"),
    [
        (OSError(errno.EIO, "", "/run/checkpoints/latest"), "/run/checkpoints/latest"),
        (
            OSError(errno.EIO, "", "/run/checkpoints/.step_1.partial/agent.pt"),
            "/run/checkpoints/step_1/agent.pt",
        ),
        (OSError(errno.EIO, "", "/run/.a.json.0123abcd.partial", None, "/run/a.json"), "/run/a.json"),
        (OSError(errno.EIO, ""), "/run/the_file_that_is_open"),
    ],
)
def test_error_names_the_file_that_the_system_names_and_else_the_one_that_is_open(
    error: OSError, named: str
) -> None:
    with (
        pytest.raises(UserError, match=f"cannot write {named}: input/output error"),
        writing(Path("/run/the_file_that_is_open")),
    ):
        raise error


@pytest.mark.parametrize("look", [exists, is_file])
def test_file_on_a_disk_that_does_not_answer_is_not_absent(
    monkeypatch: pytest.MonkeyPatch, look: Callable[[Path], bool]
) -> None:
    def no_answer(path: Path) -> None:
        raise OSError(errno.EIO, "", str(path))

    monkeypatch.setattr(Path, "stat", no_answer)
    with pytest.raises(UserError, match=r"cannot read /run/manifest\.json: input/output error"):
        look(Path("/run/manifest.json"))
