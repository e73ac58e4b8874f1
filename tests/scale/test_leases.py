import errno
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from atari_dqn.errors import UserError
from atari_dqn.run.leases import lease
from atari_dqn.run.leases.guard import LOST_EXIT_CODE, guard_in, lease_environment
from atari_dqn.run.leases.lease import HeldLease, Lease, LeaseFolder, holds, read_lease
from atari_dqn.run.leases.observer import LeaseObserver
from atari_dqn.run.leases.owner import Owner, start_time

HERE = Owner.current()
OTHER = Owner(host="other", machine="another machine", pid=4, started=7)


@pytest.fixture
def leases(tmp_path: Path) -> LeaseFolder:
    return LeaseFolder(tmp_path)


class Clock:
    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def test_one_of_two_processes_takes_a_lease(leases: LeaseFolder):
    first, second = leases.take("pong", HERE), leases.take("pong", OTHER)
    assert first is not None
    assert second is None
    assert leases.current()["pong"].owner == HERE


def test_a_released_lease_leaves_no_file(leases: LeaseFolder):
    held = leases.take("pong", HERE)
    assert held is not None
    held.release()
    assert list(leases.path.iterdir()) == []


def test_a_lease_is_read_as_it_was_written(leases: LeaseFolder):
    held = leases.take("lr=0.5_pong.1", HERE, period_seconds=2.5, cores=(0, 3))
    assert held is not None
    held.set_process(77, 1234)
    assert held.beat()
    found = read_lease(held.path)
    assert found == Lease(
        name="lr=0.5_pong.1",
        generation=1,
        token=held.lease.token,
        owner=HERE,
        period_seconds=2.5,
        cores=(0, 3),
        heartbeat=1,
        process=77,
        process_started=1234,
    )


def test_a_lease_is_stale_after_three_periods_on_the_observers_clock(leases: LeaseFolder):
    held = leases.take("pong", OTHER, period_seconds=5.0)
    assert held is not None
    clock = Clock()
    observer = LeaseObserver(leases, now=clock)
    stale = []
    for clock.seconds in (0.0, 14.9, 15.0):
        observer.refresh()
        stale.append(observer.is_stale("pong"))
    assert stale == [False, False, True]


def test_a_heartbeat_makes_a_lease_fresh_again(leases: LeaseFolder):
    held = leases.take("pong", OTHER, period_seconds=5.0)
    assert held is not None
    clock = Clock()
    observer = LeaseObserver(leases, now=clock)
    observer.refresh()
    clock.seconds = 20.0
    held.beat()
    observer.refresh()
    assert not observer.is_stale("pong")


def test_the_lease_of_a_process_that_ended_here_is_stale_at_once(leases: LeaseFolder):
    assert leases.take("pong", replace(HERE, started=HERE.started - 1)) is not None
    observer = LeaseObserver(leases)
    observer.refresh()
    assert observer.is_stale("pong")


def test_a_zombie_has_ended():
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        deadline = time.monotonic() + 60
        while start_time(child.pid) is not None and time.monotonic() < deadline:
            time.sleep(0.01)
        assert start_time(child.pid) is None


def test_a_stolen_lease_is_lost_to_its_owner(leases: LeaseFolder):
    held = leases.take("pong", OTHER)
    assert held is not None
    thief = leases.take("pong", HERE, over=leases.current()["pong"])
    assert thief is not None
    assert not held.beat()
    assert thief.beat()
    assert leases.current() == {"pong": thief.lease}


@pytest.fixture
def stolen(leases: LeaseFolder) -> tuple[HeldLease, HeldLease]:
    """Return a lease and the one stolen from it, whose owner has not removed the file of the first yet."""
    held = leases.take("pong", OTHER)
    assert held is not None
    content = held.path.read_bytes()
    thief = leases.take("pong", HERE, over=leases.current()["pong"])
    assert thief is not None
    held.path.write_bytes(content)
    return held, thief


def test_a_stolen_lease_is_lost_even_while_its_file_is_still_there(stolen: tuple[HeldLease, HeldLease]):
    assert [lease.is_held() for lease in stolen] == [False, True]


def test_a_released_lease_takes_the_file_of_the_one_it_was_stolen_from_with_it(
    leases: LeaseFolder, stolen: tuple[HeldLease, HeldLease]
):
    stolen[1].release()
    assert list(leases.path.iterdir()) == []


def test_a_heartbeat_is_flushed_for_other_hosts(leases: LeaseFolder, monkeypatch: pytest.MonkeyPatch):
    held = leases.take("pong", HERE)
    assert held is not None
    flushed: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: flushed.append(os.fstat(descriptor).st_ino))
    held.beat()
    assert flushed == [held.path.stat().st_ino]


def test_a_lease_that_cannot_be_read_for_a_moment_is_still_held(
    leases: LeaseFolder, monkeypatch: pytest.MonkeyPatch
):
    held = leases.take("pong", HERE)
    assert held is not None
    answers = iter([None, read_lease(held.path)])
    monkeypatch.setattr(lease, "read_lease", lambda path: next(answers))
    assert held.is_held()


def test_an_owner_that_lost_its_lease_does_not_release_that_of_the_thief(leases: LeaseFolder):
    held = leases.take("pong", OTHER)
    assert held is not None
    thief = leases.take("pong", HERE, over=leases.current()["pong"])
    held.release()
    assert thief is not None
    assert thief.is_held()


def test_one_of_two_thieves_steals(leases: LeaseFolder):
    leases.take("pong", OTHER)
    observed = leases.current()["pong"]
    first, second = leases.take("pong", HERE, over=observed), leases.take("pong", HERE, over=observed)
    assert first is not None
    assert second is None
    assert first.is_held()


def test_a_lease_that_was_renewed_is_not_stolen(leases: LeaseFolder):
    held = leases.take("pong", OTHER)
    assert held is not None
    observed = leases.current()["pong"]
    held.beat()
    assert leases.take("pong", HERE, over=observed) is None
    assert held.is_held()


def test_an_observation_of_an_earlier_owner_steals_nothing(leases: LeaseFolder):
    first = leases.take("pong", OTHER)
    observed = leases.current()["pong"]
    assert first is not None
    first.release()
    second = leases.take("pong", HERE)
    assert leases.take("pong", HERE, over=observed) is None
    assert second is not None
    assert second.is_held()


def test_a_late_first_lease_yields_to_a_stolen_one(leases: LeaseFolder):
    leases.take("pong", OTHER)
    thief = leases.take("pong", HERE, over=leases.current()["pong"])
    assert leases.take("pong", OTHER) is None
    assert thief is not None
    assert thief.is_held()


def test_a_file_that_is_no_lease_is_ignored(leases: LeaseFolder):
    (leases.path / "pong.1.lease").write_text("nonsense")
    (leases.path / "notes.txt").write_text("")
    assert leases.current() == {}


def test_a_training_finds_its_lease_in_its_environment(leases: LeaseFolder):
    held = leases.take("pong", HERE)
    assert held is not None
    guard = guard_in(lease_environment(held))
    assert guard is not None
    guard.check()
    assert holds(guard.path, guard.token)


def test_a_training_without_the_variables_has_no_lease():
    assert guard_in({"DQN_LEASE_FILE": "x"}) is None


CHECK = "from atari_dqn.run.leases.guard import check_lease; check_lease(); print('goes on')"


def checked(held: object) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **lease_environment(held)}  # type: ignore[arg-type]
    return subprocess.run(
        [sys.executable, "-c", CHECK], env=environment, capture_output=True, text=True, check=False
    )


def test_a_training_with_its_lease_goes_on(leases: LeaseFolder):
    held = leases.take("pong", HERE)
    assert checked(held).stdout == "goes on\n"


def test_a_training_whose_lease_is_stolen_ends_at_the_check(leases: LeaseFolder):
    held = leases.take("pong", OTHER)
    leases.take("pong", HERE, over=leases.current()["pong"])
    done = checked(held)
    assert (done.returncode, done.stdout) == (LOST_EXIT_CODE, "")
    assert "taken this run over" in done.stderr


def test_an_owner_that_lost_its_lease_leaves_that_of_a_run_begun_again(leases: LeaseFolder):
    leases.take("pong", OTHER)
    lost = leases.take("pong", HERE, over=leases.current()["pong"])
    thief = leases.take("pong", OTHER, over=leases.current()["pong"])
    assert lost is not None
    assert thief is not None
    thief.release()
    begun_again = leases.take("pong", OTHER)
    assert begun_again is not None
    lost.release()
    assert begun_again.is_held()


def test_a_thief_that_is_robbed_at_once_leaves_the_lease_of_the_other(
    leases: LeaseFolder, monkeypatch: pytest.MonkeyPatch
):
    leases.take("pong", OTHER)
    follows, others = leases._follows, list[HeldLease | None]()

    def follows_and_is_robbed(lease: Lease, over: Lease | None) -> bool:
        found = follows(lease, over)
        monkeypatch.setattr(leases, "_follows", follows)
        others.append(leases.take("pong", OTHER, over=leases.current()["pong"]))
        return found

    monkeypatch.setattr(leases, "_follows", follows_and_is_robbed)
    robbed = leases.take("pong", HERE, over=leases.current()["pong"])
    (other,) = others
    assert robbed is not None
    assert other is not None
    assert [robbed.is_held(), other.is_held()] == [False, True]


def test_a_heartbeat_that_cannot_be_written_is_missed_and_the_next_one_counts(
    leases: LeaseFolder, monkeypatch: pytest.MonkeyPatch
):
    held = leases.take("pong", HERE)
    assert held is not None
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", failing)
        assert held.beat()
    assert leases.current()["pong"].heartbeat == 0
    held.beat()
    assert leases.current()["pong"].heartbeat == 2


def failing(*_: object) -> None:
    raise OSError(errno.EIO, os.strerror(errno.EIO))


def test_a_file_that_is_no_lease_is_named(leases: LeaseFolder, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(lease, "_READ_PAUSE_SECONDS", 0.0)
    (leases.path / "pong.1.lease").touch()
    with pytest.raises(UserError, match=r"pong\.1\.lease: cannot be read as a lease"):
        leases.take("pong", HERE)


def test_a_process_that_cannot_be_looked_up_has_not_ended(monkeypatch: pytest.MonkeyPatch):
    def read_text(path: Path) -> str:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(Path, "read_text", read_text)
    assert not HERE.has_ended
