"""The status of a sweep from its files: states, progress, scores, alerts, totals; quick with many runs."""

import json
import shutil
import time
from dataclasses import replace
from pathlib import Path

import pytest

from atari_dqn.errors import UserError
from atari_dqn.machine.hardware import find_hardware
from atari_dqn.run.directory import RunDirectory
from atari_dqn.run.leases.owner import Owner
from atari_dqn.run.sweep.failures import Failure, write_failure_record
from atari_dqn.run.sweep.status import MemberStatus, SweepStatus
from atari_dqn.scale.members import load_sweep
from atari_dqn.scale.opening import OpenedSweep, open_sweep, plan_sweep
from atari_dqn.scale.plan import PlannedRun, SweepPlan, make_sweep_plan, plan_lines
from atari_dqn.scale.room import Need
from atari_dqn.view.sweep_text import failure_lines, failure_text, table_lines, totals_line

HARDWARE = find_hardware(Path.cwd(), with_gpus=False)
SEEDS = 6


@pytest.fixture
def opened(tmp_path: Path) -> OpenedSweep:
    path = tmp_path / "mine.toml"
    path.write_text(f'spec = "catch_smoke"\nseeds = {SEEDS}\n')
    return open_sweep(load_sweep(path), tmp_path / "runs", device="cpu", hardware=HARDWARE)


def write_logs(run: Path, *, frames: int, rate: float, score: float) -> None:
    run.mkdir(exist_ok=True)
    (run / "update_log.csv").write_text(f"step,env_frames\n1,4\n{frames // 4},{frames}\n")
    (run / "throughput_log.csv").write_text(
        f"step,env_frames,frames_per_second\n{frames // 4},{frames},{rate}\n"
    )
    (run / "eval_log.csv").write_text(f"step,mean_return,frame_caps\n1,-9.0,0\n2,{score},1\n")
    gate = {"kind": "gate", "data": {"gate": "disk", "state": "warned"}}
    (run / "events.jsonl").write_text(json.dumps(gate) + "\n")


def named(status: SweepStatus) -> dict[int, MemberStatus]:
    return {each.member.seed: each for each in status.members}


@pytest.fixture
def status(opened: OpenedSweep) -> SweepStatus:
    folder = opened.folder
    one, two, three, four, five, _ = (member.name for member in opened.record.members)
    write_logs(folder.path / one, frames=4_000, rate=100.0, score=5.0)
    (folder.path / one / "summary.json").write_text("{}")
    (folder.path / one / "spec.toml").touch()
    write_logs(folder.path / two, frames=1_000, rate=300.0, score=2.5)
    assert folder.leases.take(two, replace(Owner.current(), host="host é")) is not None
    write_logs(folder.path / three, frames=2_000, rate=50.0, score=0.0)
    assert folder.leases.take(four, replace(Owner.current(), started=1)) is not None
    write_failure_record(folder.failure(five), Failure(kind="halted", reason="the loss", exit_code=3))
    status = SweepStatus(folder.path)
    status.refresh()
    return status


def test_folder_of_a_sweep_is_no_run_and_says_what_it_is(opened: OpenedSweep):
    with pytest.raises(UserError, match="is the folder of a sweep; name one of its runs"):
        RunDirectory.open(opened.folder.path)


def test_each_run_has_its_state(status: SweepStatus):
    states = [each.state for each in status.members]
    assert states == ["finished", "running", "stopped", "abandoned", "halted", "waiting"]


def test_a_running_run_has_host_progress_score_and_alerts(status: SweepStatus):
    _, line = table_lines([named(status)[2]], 100)
    expected = "catch_smoke_catch_seed2 running host é 1k 25% 300 10s 2.5† disk warned"
    assert line.split() == expected.split()


def test_totals_are_sums_over_the_runs(status: SweepStatus):
    assert totals_line(status) == (
        "mine: 1 running, 1 abandoned, 1 halted, 1 stopped, 1 waiting, 1 finished; "
        "29.2% of 24k frames, 300 frames/s, 43s left"
    )


def test_a_failure_is_shown_with_its_reason_and_remedy(status: SweepStatus):
    first, second, third = failure_lines(status)
    assert first == "catch_smoke_catch_seed5 halted: the loss"
    assert second.endswith("no checkpoint was saved: change its keys in the sweep file, then it begins anew")
    assert third.endswith("output/catch_smoke_catch_seed5.txt")


def test_a_halted_run_with_a_checkpoint_may_be_resumed(status: SweepStatus):
    (status.folder.run("catch_smoke_catch_seed5").checkpoints / "latest").mkdir(parents=True)
    _, remedy, _ = failure_lines(status)
    assert "catch_smoke_catch_seed5` goes on from its last checkpoint, and halts again unless" in remedy


def test_a_reason_that_begins_with_the_state_does_not_repeat_it():
    assert failure_text(Failure(kind="halted", reason="halted by a", exit_code=3)) == "halted by a"
    assert failure_text(Failure(kind="halted", reason="by a", exit_code=3)) == "halted: by a"


def test_new_rows_are_read(status: SweepStatus):
    run = status.folder.path / status.record.members[1].name
    write_logs(run, frames=3_000, rate=300.0, score=7.0)
    status.refresh({run.name})
    assert named(status)[2].env_frames == 3_000


def test_runs_that_another_command_adds_are_shown(status: SweepStatus, tmp_path: Path):
    file = tmp_path / "mine.toml"
    file.write_text(file.read_text().replace(f"seeds = {SEEDS}", f"seeds = {SEEDS + 2}"))
    open_sweep(load_sweep(file), tmp_path / "runs", device="cpu", hardware=HARDWARE)
    status.refresh(set())
    assert [each.state for each in status.members][-2:] == ["waiting", "waiting"]
    assert len(status.members) == SEEDS + 2


def test_a_run_that_gets_another_spec_before_it_begins_has_that_ones_budget(
    opened: OpenedSweep, tmp_path: Path
):
    status, file = SweepStatus(opened.folder.path), tmp_path / "mine.toml"
    file.write_text(file.read_text() + "[set]\ntraining.total_frames = 8_000\n")
    open_sweep(load_sweep(file), tmp_path / "runs", device="cpu", hardware=HARDWARE)
    status.refresh()
    assert {each.total_frames for each in status.members} == {8_000}


def test_a_gate_that_has_warned_and_does_not_any_more_is_no_alert(status: SweepStatus):
    run = status.folder.run(status.record.members[1].name)
    gate = {"kind": "gate", "data": {"gate": "disk", "state": "ok"}}
    with run.events.open("a") as file:
        file.write(json.dumps(gate) + "\n")
    status.refresh({run.path.name})
    assert named(status)[2].alerts == ()


def test_a_gate_of_before_a_resume_is_no_alert(status: SweepStatus):
    run = status.folder.run(status.record.members[1].name)
    with run.events.open("a") as file:
        file.write(json.dumps({"kind": "resumed", "data": {}}) + "\n")
    status.refresh({run.path.name})
    assert named(status)[2].alerts == ()


def test_a_finished_run_whose_folder_is_removed_waits_again(status: SweepStatus):
    name = status.record.members[0].name
    shutil.rmtree(status.folder.path / name)
    status.refresh()
    assert named(status)[1].state == "waiting"
    assert named(status)[1].env_frames == 0


def test_a_finished_run_that_is_extended_is_not_finished_any_more(status: SweepStatus):
    finished = next(each for each in status.members if each.state == "finished")
    (status.folder.path / finished.member.name / "summary.json").unlink()
    status.refresh()
    assert named(status)[finished.member.seed].state == "stopped"


@pytest.mark.parametrize("cell", ["nan", "inf"])
def test_a_row_without_a_finite_number_of_frames_counts_none(status: SweepStatus, cell: str):
    run = status.folder.path / status.record.members[1].name
    for table in ("update_log", "throughput_log"):
        (run / f"{table}.csv").write_text(f"step,env_frames\n1,{cell}\n")
    status.refresh()
    assert named(status)[2].env_frames == 0


def test_a_run_that_another_command_stops_does_not_run_any_more(status: SweepStatus):
    (lease,) = (path for path in status.folder.leases.path.iterdir() if "seed2" in path.name)
    lease.unlink()
    status.refresh(())
    assert named(status)[2].state == "stopped"


def test_a_table_with_an_incomplete_row_has_the_row_before(status: SweepStatus):
    run = status.folder.path / status.record.members[1].name
    (run / "update_log.csv").write_text("step,env_frames\n1,1200\n2,13")
    status.refresh()
    assert named(status)[2].env_frames == 1_200


@pytest.mark.parametrize("content", ["", "\n", "nonsense", "a,b\n1\n", "step,env_frames\n1,x\n"])
def test_a_damaged_table_is_left_out(status: SweepStatus, content: str):
    for name in ("update_log", "throughput_log", "eval_log"):
        (status.folder.path / status.record.members[1].name / f"{name}.csv").write_text(content)
    status.refresh()
    assert named(status)[2].env_frames == 0


def test_the_plan_has_measured_rates_of_the_method_and_what_fits(opened: OpenedSweep, status: SweepStatus):
    hardware = replace(HARDWARE, cores_usable=1)
    plan = make_sweep_plan(opened.record, hardware=hardware, devices=["cpu"], status=status, rates={})
    text = "\n".join(plan_lines(plan, 110))
    assert [run.frames_per_second for run in plan.runs] == [100.0] * SEEDS
    assert "6 runs, 4 of them to do: 13,000 frames" in text
    assert "at once here: 1, on 1 core; one more would lack cores" in text
    assert "time, evaluations left out: 2m 10s one after another, 2m 10s with 1 at once" in text


def test_the_planned_time_of_several_at_once_is_that_of_whole_runs(opened: OpenedSweep, status: SweepStatus):
    plan = make_sweep_plan(opened.record, hardware=HARDWARE, devices=["cpu"], status=status, rates={})
    assert [run.seconds for run in plan.left] == [30.0, 20.0, 40.0, 40.0]
    assert any("1m 00s with 3 at once" in line for line in plan_lines(replace(plan, at_once=3), 110))


def test_a_finished_run_without_its_spec_is_not_finished(status: SweepStatus):
    finished = next(each for each in status.members if each.state == "finished")
    (status.folder.path / finished.member.name / "spec.toml").unlink()
    again = SweepStatus(status.folder.path)
    again.refresh()
    assert named(again)[finished.member.seed].state == "stopped"
    assert not status.folder.has_finished(finished.member.name)


def test_more_threads_than_cores_are_refused_by_the_plan_while_runs_are_left(
    opened: OpenedSweep, status: SweepStatus
):
    hardware = replace(HARDWARE, cores_usable=2)
    record = replace(opened.record, threads=64)
    with pytest.raises(UserError, match="threads: found 64, expected at most 2, the cores of this process"):
        make_sweep_plan(record, hardware=hardware, devices=["cpu"], status=status, rates={})
    for member in record.members:
        (status.folder.path / member.name).mkdir(exist_ok=True)
        (status.folder.path / member.name / "summary.json").write_text("{}")
        (status.folder.path / member.name / "spec.toml").touch()
    status.refresh()
    plan = make_sweep_plan(record, hardware=hardware, devices=["cpu"], status=status, rates={})
    assert plan.left == []


def planned(opened: OpenedSweep, status: SweepStatus | None) -> SweepPlan:
    return make_sweep_plan(opened.record, hardware=HARDWARE, devices=["cpu"], status=status, rates={})


def test_runs_that_have_not_begun_are_planned_with_the_keys_of_the_file(
    opened: OpenedSweep, status: SweepStatus
):
    path = opened.folder.path.with_name("mine.toml")
    path.write_text(path.read_text() + "set.training.total_frames = 40_000\n")
    changed = plan_sweep(load_sweep(path), opened.folder.path, device="cpu", hardware=HARDWARE)
    waiting = [run for run in planned(changed, status).runs if run.name == "catch_smoke_catch_seed6"]
    assert [(run.state, run.frames_left) for run in waiting] == [("waiting", 40_000)]


def test_rates_of_runs_with_former_keys_are_no_rates_of_the_present_ones(
    opened: OpenedSweep, status: SweepStatus
):
    path = opened.folder.path.with_name("mine.toml")
    path.write_text(path.read_text() + "set.learner.batch_size = 64\n")
    changed = plan_sweep(load_sweep(path), opened.folder.path, device="cpu", hardware=HARDWARE)
    assert {run.frames_per_second for run in planned(changed, status).runs} == {None}


def test_a_run_that_this_machine_cannot_hold_is_unfit_wherever_it_stands(opened: OpenedSweep):
    *others, last = opened.record.members
    large = replace(last, label="large", values={**last.values, "replay.capacity_steps": 10**12})
    found = planned(replace(opened, record=replace(opened.record, members=(*others, large))), None)
    assert [(run.name, run.lacking) for run in found.unfit] == [(last.name, ("RAM", "disk"))]


def test_a_run_that_is_trained_elsewhere_is_not_unfit(opened: OpenedSweep, status: SweepStatus):
    needs = Need(cores=1, ram=1, vram=0, disk=1)
    runs = [
        PlannedRun(
            name=state,
            state=state,
            frames_left=1,
            frames_per_second=None,
            need=needs,
            disk_left=1,
            lacking=("RAM",),
        )
        for state in ("running", "finished", "waiting")
    ]
    found = replace(planned(opened, status), runs=tuple(runs))
    assert [run.name for run in found.unfit] == ["waiting"]


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_the_table_of_a_plan_fits_80_columns_and_huge_numbers_stay_apart(opened: OpenedSweep, device: str):
    plan = planned(opened, None)
    runs = [replace(run, name=f"a_long_method_of_mine_{run.name}") for run in plan.runs]
    plan = replace(plan, device=device, runs=tuple(runs))
    heading, *rows = list(plan_lines(plan, 80))[: 1 + SEEDS]
    assert max(map(len, [heading, *rows])) <= 80
    huge = replace(plan.runs[0], frames_left=10**15, need=replace(plan.runs[0].need, ram=10**18, disk=10**18))
    row = list(plan_lines(replace(plan, runs=(huge, *plan.runs[1:])), 80))[1]
    assert "1,000,000,000.00 GB" in row
    assert row.count("  1,000,000,000.00 GB") == 2
    assert "  1000000G  " in row


def test_a_plan_says_whether_the_disk_has_room_for_all_runs_that_are_left(
    opened: OpenedSweep, status: SweepStatus
):
    plan = planned(opened, status)
    needed = sum(run.need.disk for run in plan.left)
    texts = ["\n".join(plan_lines(replace(plan, disk_free=free), 110)) for free in (needed, needed - 1)]
    assert ["free: too little for all" in text for text in texts] == [False, True]


def test_disk_of_all_runs_is_what_they_have_not_written_yet(opened: OpenedSweep, status: SweepStatus):
    before = planned(opened, status)
    begun = opened.folder.run(before.left[0].name).checkpoints
    begun.mkdir()
    (begun / "weights").write_bytes(b"w" * 300_000)
    plan = planned(opened, status)
    needed = sum(run.need.disk for run in plan.left)
    written = sum(512 * path.stat().st_blocks for path in (begun, begun / "weights"))
    assert written >= 300_000
    texts = ["\n".join(plan_lines(replace(plan, disk_free=needed - each), 110)) for each in (0, 300_000)]
    assert not any("too little for all" in text for text in texts)
    assert "too little for all" in "\n".join(plan_lines(replace(plan, disk_free=needed - 2 * written), 110))


def test_a_planned_run_has_the_numbers_of_its_row(opened: OpenedSweep, status: SweepStatus):
    need = Need(cores=3, ram=1_500_000_000, vram=2_500_000_000, disk=3_500_000_000)
    run = PlannedRun(
        name="mine", state="waiting", frames_left=7_200_000, frames_per_second=1_000, need=need,
        disk_left=3_000_000_000,
    )  # fmt: skip
    plan = replace(planned(opened, status), device="cuda", runs=(run,), disk_free=10_000_000_000)
    titles, row, _, *sums = plan_lines(plan, 110)
    assert titles.split() == ["run", "state", "frames", "time", "cores", "RAM", "VRAM", "disk"]
    assert " ".join(row.split()) == "mine waiting 7.2M 2h 00m 3 1.50 GB 2.50 GB 3.50 GB"
    assert "1 run, 1 of them to do: 7,200,000 frames" in sums
    assert "disk of all: 3.00 GB of 10.00 GB free" in sums


def test_jobs_limit_what_runs_at_once(opened: OpenedSweep):
    plan = make_sweep_plan(opened.record, hardware=HARDWARE, devices=["cpu"], status=None, rates={}, jobs=1)
    assert (plan.at_once, plan.limited_by) == (1, ("--jobs",))


@pytest.mark.slow
def test_a_thousand_runs_are_refreshed_in_under_a_second(tmp_path: Path):
    path = tmp_path / "mine.toml"
    path.write_text('spec = "catch_smoke"\nseeds = 1000\n')
    opened = open_sweep(load_sweep(path), tmp_path / "runs", device="cpu", hardware=HARDWARE)
    for member in opened.record.members:
        write_logs(opened.folder.path / member.name, frames=1_000, rate=100.0, score=1.0)
    status = SweepStatus(opened.folder.path)
    status.refresh()
    began = time.process_time()
    status.refresh()
    assert time.process_time() - began < 1.0
