"""While the logs of a run of another machine are replaced, no process begins to write to it."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from atari_dqn.run.directory import RunDirectory
from atari_dqn.run.leases.lease import HeldLease, Lease, LeaseFolder
from atari_dqn.run.leases.owner import Owner
from atari_dqn.run.lock import LOCK, RunLockedError
from atari_dqn.scale import takeover

ELSEWHERE = Owner(host="elsewhere", machine="another machine", pid=4, started=7)
TRAINING = replace(ELSEWHERE, pid=4711, started=5)


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    run = RunDirectory(tmp_path / "pong")
    run.path.mkdir()
    (run.tables / "eval_log.csv").write_text("a row\n")
    (run.tables / "update_log.csv").write_text("a row\n")
    return run


@pytest.fixture
def leases(tmp_path: Path) -> Iterator[tuple[Lease, HeldLease]]:
    """Return a stale lease of another machine, whose training is `TRAINING`, and the lease taken over it."""
    folder = LeaseFolder(tmp_path / "leases")
    folder.path.mkdir()
    theirs = folder.take("pong", ELSEWHERE)
    assert theirs is not None
    theirs.set_process(TRAINING.pid, TRAINING.started)
    stale = folder.current()["pong"]
    held = folder.take("pong", Owner.current(), over=stale)
    assert held is not None
    yield stale, held
    held.release()


def while_copying(monkeypatch: pytest.MonkeyPatch, act: Callable[[], None]) -> None:
    copy = takeover.shutil.copyfile

    def copy_slowly(source: Path, target: Path) -> None:
        act()
        copy(source, target)

    monkeypatch.setattr(takeover.shutil, "copyfile", copy_slowly)


def log_inodes(run: RunDirectory) -> list[int]:
    return [path.stat().st_ino for path in sorted(run.tables.glob("*.csv"))]


def refusal(run: RunDirectory) -> str:
    """Return the error with which a resume by hand is refused; empty if it is not."""
    try:
        with run.locked():
            return ""
    except RunLockedError as error:
        return str(error)


def test_a_resume_by_hand_is_refused_while_the_logs_are_replaced(
    run: RunDirectory, leases: tuple[Lease, HeldLease], monkeypatch: pytest.MonkeyPatch
):
    refusals: list[str] = []
    while_copying(monkeypatch, lambda: refusals.append(refusal(run)))
    takeover.take_over(run, *leases)
    holder = f"by another process, {Owner.current().pid} on "
    assert [holder in each for each in refusals] == [True, True]
    assert refusal(run) == ""


def test_a_resume_by_hand_is_refused_too_if_the_stale_training_ends_while_its_logs_are_replaced(
    run: RunDirectory, leases: tuple[Lease, HeldLease], monkeypatch: pytest.MonkeyPatch
):
    refusals: list[str] = []
    with ExitStack() as training:
        training.enter_context(run.locked())
        (run.path / LOCK).write_bytes(msgspec.json.encode(TRAINING))

        def resume() -> None:
            training.close()
            refusals.append(refusal(run))

        while_copying(monkeypatch, resume)
        takeover.take_over(run, *leases)
    assert "" not in refusals
    assert len(refusals) == 2


def test_the_logs_of_a_run_that_is_read_are_replaced_too(run: RunDirectory, leases: tuple[Lease, HeldLease]):
    with run.locked():
        pass
    before = log_inodes(run)
    with run.locked_for_reading():
        takeover.take_over(run, *leases)
    kept = [old == new for old, new in zip(before, log_inodes(run), strict=True)]
    assert kept == [False, False]  # though the second copy may have the inode that the first log had


def test_a_takeover_that_is_itself_taken_over_leaves_the_lock_file(
    run: RunDirectory, leases: tuple[Lease, HeldLease], monkeypatch: pytest.MonkeyPatch
):
    with run.locked():
        pass
    before, (stale, held), locked = (run.path / LOCK).stat().st_ino, leases, RunDirectory.locked

    def locked_by_the_robbed(run: RunDirectory) -> AbstractContextManager[None]:
        assert LeaseFolder(held.path.parent).take("pong", ELSEWHERE, over=held.lease) is not None
        return locked(run)

    monkeypatch.setattr(RunDirectory, "locked", locked_by_the_robbed)
    takeover.take_over(run, stale, held)
    assert (run.path / LOCK).stat().st_ino == before
