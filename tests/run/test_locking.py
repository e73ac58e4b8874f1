"""Errors inside the block of a lock are not reported as errors of the lock."""

import errno
import fcntl
import os
from pathlib import Path

import pytest

from atari_dqn.errors import UserError
from atari_dqn.run.directory import RunDirectory
from atari_dqn.run.lock import RunLockedError, locked_anew


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return RunDirectory.create(tmp_path / "run", 'track = "A"\n', "d1g3st", {})


def lock_held_still(run: RunDirectory) -> None:
    (run.path / ".lock").touch()


@pytest.mark.fault("H06")
@pytest.mark.parametrize("hold", ["locked", "locked_for_reading"])
@pytest.mark.parametrize("number", [errno.EIO, errno.EMFILE, errno.EACCES])
def test_error_of_another_file_keeps_its_name_and_kind(run: RunDirectory, hold: str, number: int) -> None:
    lock_held_still(run)
    error = OSError(number, os.strerror(number), "segment_3.rows")
    with pytest.raises(OSError, match=r"segment_3\.rows") as raised, getattr(run, hold)():
        raise error
    assert raised.value is error


@pytest.mark.parametrize("hold", ["locked", "locked_for_reading"])
def test_error_without_a_file_is_no_error_of_the_lock(run: RunDirectory, hold: str) -> None:
    lock_held_still(run)
    with pytest.raises(OSError, match="Bad file descriptor"), getattr(run, hold)():
        os.write(-1, b"")


@pytest.mark.parametrize("hold", ["locked", "locked_for_reading"])
def test_lock_that_cannot_be_opened_is_named(run: RunDirectory, hold: str) -> None:
    (run.path / ".lock").mkdir()
    with pytest.raises(UserError, match=r"run/\.lock: is a directory"), getattr(run, hold)():
        pass


@pytest.mark.parametrize("hold", ["locked", "locked_for_reading"])
def test_lock_that_cannot_be_taken_is_named(
    run: RunDirectory, hold: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    lock_held_still(run)
    monkeypatch.setattr("fcntl.flock", no_locks)
    with pytest.raises(UserError, match=r"run/\.lock: no locks available"), getattr(run, hold)():
        pass


@pytest.mark.parametrize("hold", ["locked", "locked_for_reading"])
def test_process_that_holds_the_lock_is_named(run: RunDirectory, hold: str) -> None:
    named = f"is in use by another process, {os.getpid()} on "
    with run.locked(), pytest.raises(UserError, match=named), getattr(run, hold)():
        pass


def test_process_that_has_ended_is_not_named_while_a_reader_holds_the_lock(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    with run.locked():
        pass
    monkeypatch.setattr("atari_dqn.run.leases.owner.Owner.has_ended", True)
    held = pytest.raises(UserError, match="is in use by another process; wait")
    with run.locked_for_reading(), held, run.locked():
        pass


def test_lock_of_a_file_that_was_replaced_meanwhile_is_taken_again(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    flock = fcntl.flock

    def replaced_first(file: object, kind: int) -> None:
        flock(file, kind)  # type: ignore[arg-type]
        (run.path / ".lock").unlink()
        monkeypatch.undo()

    monkeypatch.setattr("fcntl.flock", replaced_first)
    with run.locked(), pytest.raises(UserError, match="is in use by another process"), run.locked():
        pass


def test_full_disk_does_not_prevent_a_lock(run: RunDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_space(_: object) -> bytes:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("msgspec.json.encode", no_space)
    with run.locked(), pytest.raises(UserError, match="is in use by another process; wait"), run.locked():
        pass


def test_lock_of_an_earlier_version_names_no_process(run: RunDirectory) -> None:
    with (run.path / ".lock").open("a") as earlier:
        fcntl.flock(earlier, fcntl.LOCK_EX)
        with pytest.raises(UserError, match="is in use by another process; wait"), run.locked():
            pass


def test_locked_run_has_an_exit_code_of_its_own(run: RunDirectory) -> None:
    with run.locked(), pytest.raises(UserError) as refusal, run.locked_for_reading():
        pass
    assert refusal.value.exit_code == 6


def test_new_lock_file_is_held_while_the_former_one_is_held_elsewhere(run: RunDirectory) -> None:
    with run.locked(), locked_anew(run.path), pytest.raises(RunLockedError), run.locked():
        pass
    with run.locked():
        assert [path.name for path in run.path.glob("*lock*")] == [".lock"]


@pytest.mark.parametrize("name", ["spec.toml", "provenance.json"])
def test_file_that_cannot_be_read_is_named_when_a_run_is_opened(
    run: RunDirectory, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = os.open

    def refuse(path: object, *args: object, **options: object) -> object:
        if str(path).endswith(name):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return opened(path, *args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(UserError, match=rf"cannot read \S+/run/{name}: permission denied"):
        RunDirectory.open(run.path)
