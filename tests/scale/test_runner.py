"""One member under a lease: begun, resumed after crashes, stopped, taken over, not tried over and over."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread
from typing import Any

import msgspec
import pytest

from atari_dqn.run.leases.lease import HeldLease
from atari_dqn.run.leases.owner import Owner, start_time
from atari_dqn.run.lock import LOCK, RunLockedError
from atari_dqn.run.sweep.failures import Failure, read_failures, write_failure_record
from atari_dqn.run.sweep.folder import SweepFolder
from atari_dqn.run.sweep.record import Member
from atari_dqn.scale import runner as runner_module
from atari_dqn.scale import takeover, training_process
from atari_dqn.scale.members import load_sweep
from atari_dqn.scale.room import Placement
from atari_dqn.scale.runner import Outcome, Runner

FAKE = Path(__file__).with_name("fake_training.py")
ELSEWHERE = Owner(host="elsewhere", machine="another machine", pid=4, started=7)
ALL_CORES = os.sched_getaffinity(0)
CORE = min(ALL_CORES)
PLACE = Placement(device="cpu", cores=(CORE,), threads=1)
PATIENCE_SECONDS = 60.0


@pytest.fixture(autouse=True)
def fake_training(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training_process, "own_command", lambda module: [sys.executable, str(FAKE)])
    monkeypatch.setattr(runner_module, "_FIRST_PAUSE_SECONDS", 0.01)


@pytest.fixture
def folder(tmp_path: Path) -> SweepFolder:
    folder = SweepFolder(tmp_path / "sweep of mine")
    folder.create()
    return folder


@pytest.fixture
def member(tmp_path: Path) -> Member:
    path = tmp_path / "one.toml"
    path.write_text('spec = "catch_smoke"\n')
    (only,) = load_sweep(path).members()
    return only


@pytest.fixture
def runner(folder: SweepFolder) -> Iterator[Runner]:
    runner = Runner(
        folder=folder, owner=Owner.current(), stop=Event(), report=lambda sentence: None, period_seconds=0.1
    )
    yield runner
    runner.stop.set()


def plan(folder: SweepFolder, member: Member, steps: str) -> None:
    (folder.path / f"{member.name}.plan").write_text(steps)


def calls(folder: SweepFolder, member: Member) -> list[dict[str, Any]]:
    path = folder.path / f"{member.name}.calls"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def leases_left(folder: SweepFolder) -> list[Path]:
    return list(folder.leases.path.iterdir())


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} does not appear"
        time.sleep(0.01)


def test_a_member_is_trained_once_and_leaves_no_lease(runner: Runner, folder: SweepFolder, member: Member):
    assert runner.run(member, PLACE) == Outcome(kind="finished")
    assert runner.run(member, PLACE) == Outcome(kind="finished")
    assert len(calls(folder, member)) == 1
    assert leases_left(folder) == []


def test_a_training_has_its_spec_threads_cores_and_lease(runner: Runner, folder: SweepFolder, member: Member):
    runner.run(member, PLACE)
    (call,) = calls(folder, member)
    spec, run = str(folder.spec(member.name, "catch_smoke_catch")), str(folder.path / member.name)
    assert call["words"] == ["train", spec, "--run-dir", run, "--device", "cpu", "--plain"]
    assert (call["cores"], call["OMP_NUM_THREADS"], len(call["DQN_LEASE_TOKEN"])) == ([CORE], "1", 32)
    assert os.sched_getaffinity(0) == ALL_CORES


def test_a_member_that_crashed_is_resumed(runner: Runner, folder: SweepFolder, member: Member):
    plan(folder, member, "1 -9 5 0")
    assert runner.run(member, PLACE) == Outcome(kind="finished")
    assert [call["words"][0] for call in calls(folder, member)] == ["train", *["resume"] * 3]


def test_a_member_that_crashes_without_progress_is_given_up(
    runner: Runner, folder: SweepFolder, member: Member
):
    plan(folder, member, "-9 " * 10)
    outcome = runner.run(member, PLACE)
    assert outcome.failure == Failure(kind="crashed", reason="killed by signal 9", exit_code=-9)
    assert len(calls(folder, member)) == 5


def test_a_member_whose_workers_end_over_and_over_is_given_up(
    runner: Runner, folder: SweepFolder, member: Member
):
    plan(folder, member, "5 " * 10)
    outcome = runner.run(member, PLACE)
    assert outcome.failure == Failure(kind="crashed", reason="the reason of 5", exit_code=5)
    assert len(calls(folder, member)) == 5


@pytest.mark.parametrize("progress", ["checkpoint", "game"])
def test_progress_resets_the_count_of_crashes(
    runner: Runner, folder: SweepFolder, member: Member, progress: str
):
    plan(folder, member, f"1 1 1 1 {progress}:1 1 1 1 0")
    assert runner.run(member, PLACE) == Outcome(kind="finished")


@pytest.mark.parametrize(("code", "kind"), [(2, "invalid"), (3, "halted"), (4, "damaged")])
def test_an_end_that_would_repeat_is_recorded_and_not_tried_again(
    runner: Runner, folder: SweepFolder, member: Member, code: int, kind: Any
):
    plan(folder, member, str(code))
    failure = Failure(kind=kind, reason=f"the reason of {code}", exit_code=code)
    assert runner.run(member, PLACE) == Outcome(kind="failed", failure=failure)
    assert len(calls(folder, member)) == 1
    assert read_failures(folder.failures) == {member.name: failure}
    assert leases_left(folder) == []


@pytest.mark.parametrize(
    ("code", "reason"),
    [(3, "the loss is nan"), (4, "the loss is nan; resume it"), (2, "the loss is nan; resume it")],
)
def test_a_halt_is_recorded_without_its_advice_and_other_errors_with_all_lines(
    runner: Runner,
    folder: SweepFolder,
    member: Member,
    monkeypatch: pytest.MonkeyPatch,
    code: int,
    reason: str,
):
    monkeypatch.setattr(runner_module, "last_error", lambda *_: ["the loss is nan", "resume it"])
    plan(folder, member, str(code))
    failure = runner.run(member, PLACE).failure
    assert failure is not None
    assert failure.reason == reason


def outcome_if_stopped(runner: Runner, folder: SweepFolder, member: Member) -> Outcome:
    """Return the outcome of a training that is stopped while it waits, as its plan says."""
    outcomes: list[Outcome] = []
    thread = Thread(target=lambda: outcomes.append(runner.run(member, PLACE)))
    thread.start()
    wait_for(folder.path / member.name / "waiting")
    runner.stop.set()
    thread.join(PATIENCE_SECONDS)
    (outcome,) = outcomes
    return outcome


def test_a_run_that_cannot_be_saved_when_it_is_stopped_has_failed(
    runner: Runner, folder: SweepFolder, member: Member
):
    plan(folder, member, "wait:2")
    outcome = outcome_if_stopped(runner, folder, member)
    assert outcome.failure == Failure(kind="invalid", reason="the reason of 2", exit_code=2)
    assert read_failures(folder.failures) == {member.name: outcome.failure}


def test_the_last_error_of_an_output_has_all_its_lines(tmp_path: Path):
    output = tmp_path / "output.txt"
    output.write_text("error: an earlier one\nerror: the loss is nan\n\n  resume it\n")
    assert training_process.last_error(output, 0) == ["the loss is nan", "resume it"]
    assert training_process.last_error(output, 10) == ["the loss is nan", "resume it"]
    assert training_process.last_error(tmp_path / "none", 0) == []


def test_the_error_of_an_earlier_command_is_not_that_of_a_later_one(tmp_path: Path):
    output = tmp_path / "output.txt"
    output.write_text("error: an earlier one\n")
    start = training_process.output_length(output)
    with output.open("a") as file:
        file.write("Killed\n")
    assert training_process.last_error(output, start) == ["Killed"]


def test_a_failure_that_another_command_has_recorded_is_not_tried_again(
    runner: Runner, folder: SweepFolder, member: Member
):
    failure = Failure(kind="halted", reason="loss is not finite", exit_code=3)
    write_failure_record(folder.failure(member.name), failure)
    assert runner.run(member, PLACE) == Outcome(kind="failed", failure=failure)
    assert calls(folder, member) == []


def test_a_member_that_failed_and_that_a_user_has_finished_by_hand_is_finished(
    runner: Runner, folder: SweepFolder, member: Member
):
    plan(folder, member, "3")
    runner.run(member, PLACE)
    folder.run(member.name).summary.write_text("{}")
    folder.run(member.name).spec.touch()
    assert runner.run(member, PLACE) == Outcome(kind="finished")


def test_a_stopped_member_gets_sigterm_and_is_not_resumed(
    runner: Runner, folder: SweepFolder, member: Member
):
    plan(folder, member, "wait")
    assert outcome_if_stopped(runner, folder, member) == Outcome(kind="stopped")
    assert len(calls(folder, member)) == 1
    assert leases_left(folder) == []


def test_a_member_that_finishes_before_the_signal_reaches_it_has_finished(
    runner: Runner, folder: SweepFolder, member: Member
):
    plan(folder, member, "wait:finished:143")
    assert outcome_if_stopped(runner, folder, member) == Outcome(kind="finished")


def test_a_member_that_another_process_holds_is_left_to_it(
    runner: Runner, folder: SweepFolder, member: Member
):
    assert folder.leases.take(member.name, ELSEWHERE) is not None
    assert runner.run(member, PLACE) == Outcome(kind="held")
    assert calls(folder, member) == []


def test_a_member_that_a_user_resumes_by_hand_is_left_to_them(
    runner: Runner, folder: SweepFolder, member: Member
):
    (folder.path / member.name).mkdir()
    with folder.run(member.name).locked():
        assert runner.run(member, PLACE) == Outcome(kind="held")
    assert calls(folder, member) == []


def test_a_member_that_is_read_by_hand_is_left_alone(runner: Runner, folder: SweepFolder, member: Member):
    run = folder.run(member.name)
    run.path.mkdir()
    (run.path / LOCK).touch()
    with run.locked_for_reading():
        assert runner.run(member, PLACE) == Outcome(kind="held")
    assert calls(folder, member) == []


def test_a_member_whose_training_finds_it_locked_has_not_failed(
    runner: Runner, folder: SweepFolder, member: Member
):
    plan(folder, member, str(RunLockedError.exit_code))
    assert runner.run(member, PLACE) == Outcome(kind="held")
    assert read_failures(folder.failures) == {}


@pytest.mark.parametrize("machine", [ELSEWHERE.machine, "a third machine"])
def test_a_run_whose_lease_is_stale_and_that_a_user_resumes_by_hand_is_left_to_them(
    runner: Runner, folder: SweepFolder, member: Member, machine: str
):
    run = folder.run(member.name)
    run.path.mkdir()
    held = folder.leases.take(member.name, ELSEWHERE)
    assert held is not None
    held.set_process(4711, 5)
    with run.locked():
        (run.path / LOCK).write_bytes(msgspec.json.encode(replace(ELSEWHERE, machine=machine, pid=4712)))
        assert runner.run(member, PLACE, folder.leases.current()[member.name]) == Outcome(kind="held")
        assert (run.path / LOCK).exists()
    assert calls(folder, member) == []


def test_a_training_whose_lease_is_stolen_is_killed(runner: Runner, folder: SweepFolder, member: Member):
    plan(folder, member, "wait")
    outcomes: list[Outcome] = []
    thread = Thread(target=lambda: outcomes.append(runner.run(member, PLACE)))
    thread.start()
    wait_for(folder.path / member.name / "waiting")
    thief: HeldLease | None = None
    while thief is None:  # a heartbeat may come between observation and theft
        thief = folder.leases.take(member.name, ELSEWHERE, over=folder.leases.current()[member.name])
    thread.join(PATIENCE_SECONDS)
    assert outcomes == [Outcome(kind="lost")]
    assert start_time(calls(folder, member)[0]["pid"]) is None
    assert thief.is_held()


def test_the_training_of_a_stale_lease_of_this_machine_is_killed_though_it_is_stopped(
    runner: Runner, folder: SweepFolder, member: Member
):
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as left:
        os.kill(left.pid, signal.SIGSTOP)
        owner = replace(Owner.current(), pid=left.pid, started=1)
        held = folder.leases.take(member.name, owner)
        assert held is not None
        held.set_process(left.pid, start_time(left.pid) or 0)
        assert runner.run(member, PLACE, folder.leases.current()[member.name]) == Outcome(kind="finished")
        assert left.wait(PATIENCE_SECONDS) == -signal.SIGKILL


def test_the_lease_is_renewed_while_the_training_of_a_stale_one_is_killed(folder: SweepFolder):
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as left:
        stale = folder.leases.take("pong", Owner.current())
        assert stale is not None
        stale.set_process(left.pid, start_time(left.pid) or 0)
        held = folder.leases.take("pong", Owner.current(), over=stale.lease, period_seconds=0.0)
        assert held is not None
        takeover.take_over(folder.run("pong"), stale.lease, held)
    assert folder.leases.current()["pong"].heartbeat > 0


def test_the_lease_is_renewed_in_the_pause_after_a_crash(folder: SweepFolder, member: Member):
    heartbeats: list[int] = []

    def report(sentence: str) -> None:
        heartbeats.append(folder.leases.current()[member.name].heartbeat)

    plan(folder, member, "1 1 0")
    runner = Runner(folder=folder, owner=Owner.current(), stop=Event(), report=report, period_seconds=1e6)
    runner.run(member, PLACE)
    assert [count > 0 for count in heartbeats] == [False, True]


def test_the_logs_of_a_run_of_another_machine_are_replaced_so_that_late_rows_are_lost(
    runner: Runner, folder: SweepFolder, member: Member
):
    run = folder.path / member.name
    run.mkdir()
    (run / "eval_log.csv").write_text("kept\n")
    held = folder.leases.take(member.name, ELSEWHERE)
    assert held is not None
    held.set_process(4711, 5)
    with (run / "eval_log.csv").open("a") as late, folder.run(member.name).locked():
        (run / LOCK).write_bytes(msgspec.json.encode(replace(ELSEWHERE, pid=4711, started=5)))
        stale = folder.leases.current()[member.name]
        assert runner.run(member, PLACE, stale) == Outcome(kind="finished")
        late.write("late\n")
    assert (run / "eval_log.csv").read_text() == "kept\n"
    assert [call["words"][0] for call in calls(folder, member)] == ["resume"]


def test_a_takeover_that_is_itself_taken_over_replaces_nothing(
    folder: SweepFolder, monkeypatch: pytest.MonkeyPatch
):
    run = folder.run("pong")
    run.path.mkdir()
    log = run.tables / "eval_log.csv"
    log.write_text("a row\n")
    (run.path / LOCK).touch()
    assert folder.leases.take("pong", ELSEWHERE) is not None
    stale = folder.leases.current()["pong"]
    held = folder.leases.take("pong", Owner.current(), over=stale)
    assert held is not None

    def copy_slowly(source: Path, target: Path) -> None:
        target.write_bytes(source.read_bytes())
        assert folder.leases.take("pong", ELSEWHERE, over=held.lease) is not None
        log.write_text("a row\na row of the third process\n")

    monkeypatch.setattr(takeover.shutil, "copyfile", copy_slowly)
    takeover.take_over(run, stale, held)
    assert log.read_text() == "a row\na row of the third process\n"
    assert (run.path / LOCK).exists()
