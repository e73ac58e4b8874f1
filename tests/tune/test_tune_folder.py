"""A folder has the tune that began in it, exactly, and takes no other one."""

import errno
import os
from dataclasses import replace
from pathlib import Path

import pytest
from tuning import TINY, begun

from atari_dqn.errors import DamagedError, UserError
from atari_dqn.formatting import size
from atari_dqn.machine.hardware import find_hardware
from atari_dqn.machine.plan import make_plan
from atari_dqn.machine.sizes import MOST_ACTIONS
from atari_dqn.scale.tuning.folder import (
    Stopwatch,
    TuneFolder,
    TuneRecord,
    read_tune_record,
    recorded,
    worked_seconds,
    write_tune_record,
)
from atari_dqn.scale.tuning.opening import plan_tune
from atari_dqn.scale.tuning.plan import check_one_fits, plan_lines
from atari_dqn.scale.tuning.study import TrialLog
from atari_dqn.scale.tuning.trials import trial_values
from atari_dqn.scale.tuning.tune import Budget, Tune
from atari_dqn.scale.tuning.tune_file import load_tune
from atari_dqn.spec.errors import SpecError
from atari_dqn.spec.keys import build

TEXT = (
    f'spec = "{TINY}"\nseeds = 2\n[set]\nlearner.max_abs_reward = inf\ngates.max_grad_norm = 1e9\n[space]\n'
    "toggles.prioritized = { choice = [true, false] }\noptimizer.learning_rate = { log = [1e-5, 1] }\n"
    "replay.alpha = { uniform = [0, 1], when = { toggles.prioritized = true } }\n"
    "optimizer.epsilon = { choice = [1, 0.01] }\n"
    "[pruning]\n[budget]\ntrials = 3\nhours = 1.5\n"
)


@pytest.fixture
def place(tmp_path: Path) -> tuple[TuneRecord, TuneFolder]:
    return begun(tmp_path, TEXT)


Place = tuple[TuneRecord, TuneFolder]


def test_a_record_is_read_as_it_was_written(place: Place):
    record, folder = place
    assert read_tune_record(folder) == record
    assert recorded(record.tune, folder, "cpu") == record


def test_tune_begins_though_the_tracks_value_of_a_searched_key_contradicts_its_base(tmp_path: Path):
    # 50,000 steps of the track's prefill are more than 150 of the replay
    space = "[space]\nreplay.prefill_steps = { integer = [50, 100] }\n[budget]\ntrials = 1\n"
    (tmp_path / "mine.toml").write_text(f'spec = "{TINY}"\n{space}')
    tune = load_tune(tmp_path / "mine.toml")
    opened = plan_tune(tune, tmp_path / "tune", device="cpu", hardware=find_hardware(tmp_path))
    assert opened.record.tune == tune


WITH_AND_WITHOUT_ACTORS = (
    'spec = "pong_quick"\nthreads = 2\n[set]\nenv.num_envs = 8\n'
    '[space]\nactors.mode = { choice = ["none", "free_running"] }\n[budget]\ntrials = 2\n'
)


def test_a_value_chosen_for_the_machine_is_one_that_every_trial_can_have(tmp_path: Path):
    (tmp_path / "mine.toml").write_text(WITH_AND_WITHOUT_ACTORS)
    hardware = replace(find_hardware(tmp_path), cores_usable=2)
    opened = plan_tune(load_tune(tmp_path / "mine.toml"), tmp_path / "tune", device="cpu", hardware=hardware)
    assert opened.record.auto["system.workers"] == 0  # 1 without actors alone, which actors contradict


def test_a_recorded_value_that_a_trial_cannot_have_is_a_fault_of_the_trial(tmp_path: Path):
    (tmp_path / "mine.toml").write_text(WITH_AND_WITHOUT_ACTORS)
    auto = {"learner.threads": 2, "learner.precision": "fp32", "learner.compile": False, "system.workers": 1}
    record = TuneRecord(tune=load_tune(tmp_path / "mine.toml"), device="cpu", auto=auto)
    assert trial_values(record, {"actors.mode": "none"})["system.workers"] == 1
    with pytest.raises(SpecError, match=r"system\.workers: found 1 with actors\.processes = 2"):
        trial_values(record, {"actors.mode": "free_running"})


def test_a_tune_whose_base_has_other_threads_is_refused_before_it_begins_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "mine.toml").write_text(TEXT.replace("[set]\n", "[set]\nlearner.threads = 2\n"))
    tune, hardware = load_tune(tmp_path / "mine.toml"), find_hardware(tmp_path)
    message = 'mine: learner.threads: found 2, expected "auto" or 1, .*; write threads = 2 at the top'
    with pytest.raises(SpecError, match=message):
        plan_tune(tune, tmp_path / "tune", device="cpu", hardware=hardware)
    folder = TuneFolder(tmp_path / "tune")
    folder.runs.create()
    write_tune_record(folder, TuneRecord(tune=tune, device="cpu", auto={}))
    assert plan_tune(tune, tmp_path / "tune", device="cpu", hardware=hardware).record.tune == tune


def test_more_threads_than_cores_are_refused_by_the_plan_and_the_start(place: Place, tmp_path: Path):
    record, hardware = place[0], replace(find_hardware(tmp_path), cores_usable=2)
    record = replace(record, tune=replace(record.tune, threads=64))
    with pytest.raises(UserError, match="threads: found 64, expected at most 2, the cores"):
        list(plan_lines(record, hardware, ["cpu"]))
    with pytest.raises(UserError, match="threads: found 64, expected at most 2, the cores"):
        check_one_fits(record, hardware, ["cpu"])


def test_the_plan_has_no_more_runs_at_once_than_jobs(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("atari_dqn.scale.room._allowed_cores", lambda: (0, 1, 2))
    hardware = replace(find_hardware(tmp_path), cores_usable=3)
    auto = {"learner.precision": "fp32", "learner.compile": False, "system.workers": 0}
    record = replace(place[0], auto=auto)
    for jobs, at_once in ((None, "2 runs"), (1, "1 run")):
        *_, last = plan_lines(record, hardware, ["cpu"], jobs=jobs)
        assert last == f"at once here: {at_once} of 1 trial, on 3 cores"


def test_the_plan_counts_runs_and_frames_of_a_trial_and_runs_of_the_budget(place: Place, tmp_path: Path):
    auto = {"learner.precision": "fp32", "learner.compile": False, "system.workers": 0}
    lines = list(plan_lines(replace(place[0], auto=auto), find_hardware(tmp_path), ["cpu"]))
    assert "a trial: 2 runs of 1,200 frames, 2,400 in all; 6 runs at most" in lines


SIZES = (
    f'spec = "{TINY}"\n[space]\nreplay.capacity_steps = {{ integer = [150, 40_000] }}\n[budget]\ntrials = 1\n'
)


@pytest.fixture
def sizes(tmp_path: Path) -> tuple[TuneRecord, int]:
    """A tune that searches the replay's capacity, and the bytes of memory that its largest run needs."""
    (tmp_path / "mine.toml").write_text(SIZES)
    tune, hardware = load_tune(tmp_path / "mine.toml"), find_hardware(tmp_path)
    record = plan_tune(tune, tmp_path / "tune", device="cpu", hardware=hardware).record
    spec = build(trial_values(record, {"replay.capacity_steps": 40_000}))
    return record, make_plan(spec, num_actions=MOST_ACTIONS, device="cpu", hardware=hardware).bytes("ram")


def test_the_plan_is_of_the_run_with_the_most_memory(sizes: tuple[TuneRecord, int], tmp_path: Path):
    record, ram = sizes
    lines = list(plan_lines(record, find_hardware(tmp_path), ["cpu"]))
    assert [f" {size(ram)} RAM," in line for line in lines if line.startswith("the largest run: ")] == [True]


def test_a_tune_of_which_the_largest_run_does_not_fit_is_refused(
    sizes: tuple[TuneRecord, int], tmp_path: Path
):
    record, ram = sizes
    too_small = replace(find_hardware(tmp_path), memory_available_bytes=ram - 1)
    with pytest.raises(UserError, match="a run of mine does not fit: this machine has too little RAM"):
        check_one_fits(record, too_small, ["cpu"])


def test_the_time_of_a_command_is_added_to_that_of_those_before(place: Place):
    _, folder = place
    folder.clock.write_text('{"seconds": 5000.0}')
    Stopwatch(folder).save(now=True)
    assert 5_000.0 <= worked_seconds(folder) < 5_060.0


def test_a_budget_is_raised(place: Place):
    record, folder = place
    raised = replace(record.tune, budget=Budget(trials=9, hours=None))
    assert recorded(raised, folder, "cpu") == replace(record, tune=raised)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"seeds": (1, 2, 3)},
            "holds a tune that differs in seeds; only its budget can be raised: name another",
        ),
        ({"name": "other"}, "differs in name;"),
        ({"base": {}}, "differs in track, game, seed,"),
        ({"pruning": None}, "differs in pruning;"),
        (
            {"space": ()},
            "differs in toggles.prioritized, optimizer.learning_rate, optimizer.epsilon, replay.alpha;",
        ),
        ({"budget": Budget(trials=2, hours=None)}, "budget.trials: found 2, the folder has 3"),
        ({"budget": Budget(trials=3, hours=1.0)}, "budget.hours: found 1.0, the folder has 1.5"),
    ],
)
def test_another_tune_is_refused_with_what_differs(place: Place, changed: dict[str, object], message: str):
    record, folder = place
    other: Tune = replace(record.tune, **changed)  # type: ignore[arg-type]
    with pytest.raises(UserError) as caught:
        recorded(other, folder, "cpu")
    assert message in str(caught.value)


def test_another_device_is_refused(place: Place):
    record, folder = place
    with pytest.raises(UserError, match="its runs began with device cpu, found cuda"):
        recorded(record.tune, folder, "cuda")


def test_a_tune_begins_in_a_folder_that_a_command_left_before_it_wrote_the_record(
    place: Place, tmp_path: Path
):
    record, _ = place
    folder = TuneFolder(tmp_path / "other")
    with folder.locked():
        assert recorded(record.tune, folder, "cpu") is None


@pytest.mark.parametrize(
    "text",
    ["", "[]", '{"schema_version": 1}', '{"schema_version": 1, "tune": {}, "device": "cpu", "auto": {}}'],
)
def test_a_damaged_record_is_named(place: Place, text: str):
    _, folder = place
    folder.record.write_text(text)
    with pytest.raises(DamagedError, match=r"tune\.json"):
        read_tune_record(folder)


@pytest.mark.parametrize("is_empty", [True, False])
@pytest.mark.parametrize("writable", [True, False])
def test_a_log_without_a_line_although_runs_have_begun_is_named(place: Place, writable: bool, is_empty: bool):
    record, folder = place
    folder.log.unlink(missing_ok=True)
    if is_empty:
        folder.log.touch()
    run = folder.runs.path / "trial0000_catch_seed1"
    run.mkdir()
    TrialLog(folder, record.tune, writable=False)  # no run: the tune has just begun
    (run / "spec.toml").touch()
    with pytest.raises(
        DamagedError, match=f"{folder.log}: is missing or empty, although trials have begun; restore it"
    ):
        TrialLog(folder, record.tune, writable=writable)


def test_a_full_disk_is_named_when_a_trial_is_recorded(place: Place, monkeypatch: pytest.MonkeyPatch):
    record, folder = place
    log = TrialLog(folder, record.tune, writable=True)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(type(log._storage._backend), "append_logs", full)
    with pytest.raises(UserError, match=f"{folder.log}: no space left on device"):
        log.suggest()
