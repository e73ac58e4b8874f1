"""Members run in order, several at once on cores of their own; what others hold is left to them."""

import json
import sys
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from atari_dqn.errors import InfrastructureError, UserError
from atari_dqn.machine.hardware import find_hardware
from atari_dqn.run.leases.owner import Owner
from atari_dqn.run.sweep.folder import SweepFolder
from atari_dqn.run.sweep.record import Member
from atari_dqn.scale import training_process
from atari_dqn.scale.local import LocalSite
from atari_dqn.scale.members import load_sweep
from atari_dqn.scale.opening import OpenedSweep, open_sweep
from atari_dqn.scale.room import Needs, Room
from atari_dqn.scale.runner import Runner
from atari_dqn.scale.scheduler import SweepResult, run_members
from atari_dqn.scale.site_workers import SiteWorkers

FAKE = Path(__file__).with_name("fake_training.py")
HARDWARE = find_hardware(Path.cwd(), with_gpus=False)
ELSEWHERE = Owner(host="elsewhere", machine="another machine", pid=4, started=7)
HERE = Owner.current()


@pytest.fixture(autouse=True)
def fake_training(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training_process, "own_command", lambda module: [sys.executable, str(FAKE)])
    monkeypatch.setattr("atari_dqn.scale.local._WAKE_SECONDS", 0.05)


@pytest.fixture
def opened(tmp_path: Path) -> OpenedSweep:
    path = tmp_path / "mine.toml"
    path.write_text('spec = "catch_smoke"\nseeds = 4\n')
    return open_sweep(load_sweep(path), tmp_path / "runs", device="cpu", hardware=HARDWARE)


@dataclass
class Scheduler:
    workers: SiteWorkers
    folder: SweepFolder
    options: dict[str, Any]

    def run(self, members: Sequence[Member]) -> SweepResult:
        return run_members(members, self.folder, self.workers, **self.options)


def scheduler(opened: OpenedSweep, **options: Any) -> Scheduler:
    runner = Runner(
        folder=opened.folder, owner=HERE, stop=Event(), report=lambda sentence: None, period_seconds=0.1
    )
    cores = options.pop("cores", sorted(range(HARDWARE.cores_usable)))
    room, jobs = Room(HARDWARE, ["cpu"], cores=cores), options.pop("jobs", None)
    site = LocalSite(runner, room, Needs(HARDWARE, 1))
    workers = SiteWorkers(site, opened.folder.leases, period_seconds=0.1, jobs=jobs)
    given = {"is_interrupted": lambda: False, "show": lambda names: None, "report": lambda sentence: None}
    return Scheduler(workers, opened.folder, {**given, **options})


def name(seed: int) -> str:
    return f"catch_smoke_catch_seed{seed}"


def words(opened: OpenedSweep, seed: int) -> list[str]:
    path = opened.folder.path / f"{name(seed)}.calls"
    return [json.loads(line)["words"][0] for line in path.read_text().splitlines()] if path.exists() else []


def test_every_member_is_trained_once(opened: OpenedSweep):
    result = scheduler(opened).run(opened.record.members)
    assert (sorted(result.finished), result.failed, result.unfinished) == (
        [name(s) for s in (1, 2, 3, 4)],
        {},
        (),
    )
    again = scheduler(opened).run(opened.record.members)
    assert sorted(again.finished) == sorted(result.finished)
    assert [words(opened, seed) for seed in (1, 2, 3, 4)] == [["train"]] * 4
    assert list(opened.folder.leases.path.iterdir()) == []


def test_a_lease_of_a_run_that_finished_goes_with_its_owner(opened: OpenedSweep):
    # such as that of a command that was killed between the end of a training and the release of its lease
    scheduler(opened).run(opened.record.members)
    leases, dead = opened.folder.leases, replace(HERE, pid=2**22 + 1)
    assert leases.take(name(1), dead) is not None
    assert leases.take(name(2), HERE) is not None
    scheduler(opened).run(opened.record.members)
    assert {*leases.current()} == {name(2)}


def test_a_thread_that_does_not_start_ends_the_command(opened: OpenedSweep, monkeypatch: pytest.MonkeyPatch):
    def refuse(thread: Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(Thread, "start", refuse)
    with pytest.raises(InfrastructureError, match=f"no thread could be started for {name(1)}"):
        scheduler(opened).run(opened.record.members)


def test_runs_that_began_come_first(opened: OpenedSweep):
    (opened.folder.path / name(3)).mkdir()
    order: list[str] = []

    def show(changed: Any) -> None:
        order.extend(sorted(set(changed) - set(order)))

    scheduler(opened, jobs=1, show=show).run(opened.record.members)
    assert order[0] == name(3)


def test_a_member_whose_keys_another_command_changes_is_not_begun_with_its_former_spec(opened: OpenedSweep):
    def change(names: object) -> None:
        text = 'spec = "catch_smoke"\nseeds = 4\nset.learner.batch_size = 16\n'
        path = opened.folder.path.with_name("mine.toml")
        if "batch_size" not in path.read_text():
            path.write_text(text)
            open_sweep(load_sweep(path), opened.folder.path, device="cpu", hardware=HARDWARE)

    result = scheduler(opened, jobs=1, show=change).run(opened.record.members)
    assert (result.finished, result.unfinished) == ((name(1),), ())
    assert words(opened, 2) == []


def test_a_failure_does_not_end_the_others_and_is_not_tried_by_the_next_command(opened: OpenedSweep):
    (opened.folder.path / f"{name(2)}.plan").write_text("3 0")
    first = scheduler(opened).run(opened.record.members)
    second = scheduler(opened).run(opened.record.members)
    assert {each: failure.kind for each, failure in first.failed.items()} == {name(2): "halted"}
    assert second == SweepResult(finished=second.finished, failed=first.failed, unfinished=())
    assert len(first.finished) == 3
    assert words(opened, 2) == ["train"]


def test_a_run_that_failed_and_that_a_user_has_finished_by_hand_has_not_failed(opened: OpenedSweep):
    (opened.folder.path / f"{name(2)}.plan").write_text("3 0")
    scheduler(opened).run(opened.record.members)
    (opened.folder.path / name(2) / "summary.json").write_text("{}")
    (opened.folder.path / name(2) / "spec.toml").touch()
    result = scheduler(opened).run(opened.record.members)
    assert (len(result.finished), result.failed) == (4, {})


def test_an_interrupt_stops_what_runs_and_begins_nothing_more(opened: OpenedSweep):
    (opened.folder.path / f"{name(1)}.plan").write_text("wait 0")
    waiting = opened.folder.path / name(1) / "waiting"
    stopped = scheduler(opened, jobs=1, is_interrupted=waiting.exists).run(opened.record.members)
    assert (stopped.finished, sorted(stopped.unfinished)) == ((), [name(seed) for seed in (1, 2, 3, 4)])
    assert words(opened, 2) == []
    assert len(scheduler(opened).run(opened.record.members).finished) == 4
    assert words(opened, 1) == ["train", "resume"]


def test_a_run_of_another_host_is_taken_over_once_its_heartbeat_stops(opened: OpenedSweep):
    assert opened.folder.leases.take(name(1), ELSEWHERE, period_seconds=0.5) is not None
    began = time.monotonic()
    result = scheduler(opened).run(opened.record.members)
    assert len(result.finished) == 4
    assert time.monotonic() - began > 1.5


def test_cores_of_another_command_on_this_machine_are_not_used(opened: OpenedSweep):
    opened.folder.leases.take("other", HERE, cores=[7])
    workers = scheduler(opened, cores=[7]).workers
    workers.start(opened.record.members)
    assert list(workers.running) == []


def test_a_run_that_can_never_fit_ends_the_command(opened: OpenedSweep):
    result = scheduler(opened, cores=[]).run(opened.record.members)
    assert "seed1 does not fit: this machine has too little cores" in str(result.error)
    assert len(result.unfinished) == 4


def test_what_has_finished_is_known_also_if_a_run_does_not_fit(opened: OpenedSweep):
    (opened.folder.path / name(4)).mkdir()
    (opened.folder.path / name(4) / "summary.json").touch()
    (opened.folder.path / name(4) / "spec.toml").touch()
    result = scheduler(opened, cores=[]).run(opened.record.members)
    assert result.finished == (name(4),)
    assert isinstance(result.error, UserError)


def test_runs_are_in_the_order_of_the_sweep_whichever_ends_first(opened: OpenedSweep):
    (opened.folder.path / name(1)).mkdir()
    (opened.folder.path / f"{name(1)}.plan").write_text("after:others_have_ended")
    ends: list[str] = []

    def show(changed: Collection[str]) -> None:
        ends.extend(each for each in changed if opened.folder.has_finished(each) and each not in ends)
        if len(ends) == 3:
            (opened.folder.path / "others_have_ended").touch()

    result = scheduler(opened, show=show).run(opened.record.members)
    assert ends[-1] == name(1)
    assert result.finished == tuple(map(name, (1, 2, 3, 4)))


def test_a_lease_of_a_run_that_the_file_has_lost_goes_with_its_owner(opened: OpenedSweep):
    assert opened.folder.leases.take(name(1), replace(HERE, pid=2**22 + 1)) is not None
    scheduler(opened, is_interrupted=lambda: True).run(opened.record.members[1:])
    assert opened.folder.leases.current() == {}


def test_a_run_that_can_never_fit_ends_the_command_also_if_another_hosts_run_left_its_lease(
    opened: OpenedSweep,
):
    done, waiting = opened.record.members[:2]
    assert opened.folder.leases.take(done.name, ELSEWHERE, period_seconds=0.1) is not None
    until = time.monotonic() + 10  # so that the fault fails the test, and does not hang it
    result = scheduler(opened, cores=(), is_interrupted=lambda: time.monotonic() > until).run([waiting])
    assert "does not fit" in str(result.error)


def test_an_error_of_the_disk_ends_the_command_after_the_others_have_stopped(
    opened: OpenedSweep, monkeypatch: pytest.MonkeyPatch
):
    def full(*_: object) -> None:
        raise UserError("cannot write x: no space left on device")

    monkeypatch.setattr(training_process, "write_atomically", full)
    assert "no space left" in str(scheduler(opened).run(opened.record.members).error)
    assert list(opened.folder.leases.path.iterdir()) == []


def test_a_read_that_fails_ends_the_command_after_what_runs_was_saved(opened: OpenedSweep):
    (opened.folder.path / f"{name(1)}.plan").write_text("wait 0")

    def show(names: Collection[str]) -> None:
        if (opened.folder.path / name(1) / "waiting").exists():
            raise UserError("record.json: stale file handle")

    result = scheduler(opened, show=show).run(opened.record.members[:1])
    assert str(result.error) == "record.json: stale file handle"
    assert (opened.folder.path / name(1) / "stopped").exists()
    assert list(opened.folder.leases.path.iterdir()) == []


def test_a_second_signal_ends_the_command_without_waiting_for_what_runs(opened: OpenedSweep):
    (opened.folder.path / f"{name(1)}.plan").write_text("wait")

    def show(names: Collection[str]) -> None:
        if (opened.folder.path / name(1) / "waiting").exists():
            raise KeyboardInterrupt

    started = scheduler(opened, jobs=1, show=show)
    with pytest.raises(KeyboardInterrupt):
        started.run(opened.record.members)
    assert list(started.workers.running) == [name(1)]
    while started.workers.running:
        started.workers.stop(started.workers.running)
        started.workers.ended()


def test_a_run_that_finishes_while_the_others_are_stopped_after_an_error_has_finished(opened: OpenedSweep):
    (opened.folder.path / f"{name(1)}.plan").write_text("wait:0")

    def show(names: Collection[str]) -> None:
        if (opened.folder.path / name(1) / "waiting").exists():
            raise UserError("record.json: stale file handle")

    result = scheduler(opened, jobs=1, show=show).run(opened.record.members)
    assert (result.finished, result.unfinished) == ((name(1),), tuple(map(name, (2, 3, 4))))


def test_an_error_of_a_run_is_known_also_after_an_interrupt(
    opened: OpenedSweep, monkeypatch: pytest.MonkeyPatch
):
    (opened.folder.path / f"{name(1)}.plan").write_text("wait")
    waiting, failed = opened.folder.path / name(1) / "waiting", Event()
    write = training_process.write_atomically

    def full(path: Path, data: bytes) -> None:
        if name(2) in str(path):
            while not waiting.exists():
                time.sleep(0.01)
            failed.set()
            raise UserError("cannot write x: no space left on device")
        write(path, data)

    monkeypatch.setattr(training_process, "write_atomically", full)
    result = scheduler(opened, cores=[0, 1], is_interrupted=failed.is_set).run(opened.record.members[:2])
    assert "no space left" in str(result.error)


def test_a_member_is_stopped_alone_while_others_go_on(opened: OpenedSweep):
    for seed in (1, 2):
        (opened.folder.path / f"{name(seed)}.plan").write_text("wait 0")
    workers = scheduler(opened, cores=[0, 1]).workers
    workers.start(opened.record.members[:2])
    until = time.monotonic() + 60
    while not all((opened.folder.path / name(seed) / "waiting").exists() for seed in (1, 2)):
        assert time.monotonic() < until
        time.sleep(0.02)
    workers.stop([name(1)])
    ended = dict(workers.ended())
    while not ended:
        ended = dict(workers.ended())
    assert {each: outcome.kind for each, outcome in ended.items()} == {name(1): "stopped"}
    assert list(workers.running) == [name(2)]
    workers.stop([name(2)])
    while workers.running:
        workers.ended()
