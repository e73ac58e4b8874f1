"""Trials begin, end and go on as the files say, with runs that are made up."""

import math
import random
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from tuning import TINY, FakeWorkers, KilledError, begun, command, trials_of

from atari_dqn.compare.reference.studies import human_random
from atari_dqn.errors import UserError
from atari_dqn.run.directory import RunDirectory
from atari_dqn.run.leases.owner import Owner
from atari_dqn.run.sweep.failures import Failure, write_failure_record
from atari_dqn.run.sweep.record import Member
from atari_dqn.scale.tuning import tuner
from atari_dqn.scale.tuning.folder import TuneFolder
from atari_dqn.scale.tuning.ranking import read_standing
from atari_dqn.scale.tuning.space import Dimension
from atari_dqn.scale.tuning.study import TrialLog
from atari_dqn.scale.tuning.table import trial_line
from atari_dqn.scale.tuning.trials import trial_values
from atari_dqn.scale.tuning.tune import Budget
from atari_dqn.scale.tuning.tuner import MOST_REPEATED
from atari_dqn.spec.digest import spec_digest
from atari_dqn.spec.keys import build
from atari_dqn.spec.loader import ResolvedSpec
from atari_dqn.spec.render import resolved_toml

SPACE = (
    f'spec = "{TINY}"\nseeds = 2\n[space]\noptimizer.learning_rate = {{ log = [1e-5, 1e-1] }}\n'
    "toggles.prioritized = { choice = [true, false] }\n"
    "replay.alpha = { uniform = [0.1, 0.9], when = { toggles.prioritized = true } }\n"
    "[budget]\ntrials = 30\n"
)
PRUNING = "[pruning]\nstartup_trials = 4\n"
TWO_GAMES = (
    'spec = "pong_quick"\ngame = ["pong", "breakout"]\nseeds = 2\n[objective]\nscore = "human_normalised"\n'
    "[set]\nlearner.threads = 1\nsystem.workers = 0\n"
    "[space]\noptimizer.learning_rate = { log = [1e-5, 1e-3] }\n[budget]\ntrials = 1\n"
)
CHOICE = f'spec = "{TINY}"\n[space]\ntoggles.n_step = {{ choice = [1, 2, 3] }}\n[budget]\ntrials = 8\n'


def planted(member: Member, frames: int) -> float:
    """Return a score with its maximum at a learning rate of 1e-3 with prioritized replay and α = 0.5."""
    rate = float(member.values["optimizer.learning_rate"])
    alpha = float(member.values.get("replay.alpha", 2.0))
    return frames / 1_200 * (10 - (math.log10(rate) + 3) ** 2 - 4 * (alpha - 0.5) ** 2) + 0.1 * member.seed


def constant(member: Member, frames: int) -> float:
    return float(member.values["toggles.n_step"]) + frames / 10_000


def test_a_planted_optimum_is_found_in_30_trials(tmp_path: Path):
    record, folder = begun(tmp_path, SPACE)
    command(record, folder, planted)
    best = read_standing(record, folder, TrialLog(folder, record.tune, writable=False)).ranked[0]
    assert best.settings["toggles.prioritized"] is True
    assert 2e-4 < float(best.settings["optimizer.learning_rate"]) < 5e-3
    assert best.value > 9.5


def test_the_objective_of_a_trial_is_the_mean_over_its_seeds(tmp_path: Path):
    record, folder = begun(tmp_path, SPACE.replace("trials = 30", "trials = 1"))
    result, workers = command(record, folder, lambda member, frames: frames / 600 + 10 * member.seed)
    (trial,) = trials_of(record, folder)
    assert (trial.state, trial.value) == ("complete", 17.0)
    assert trial.steps == {0: 11.0, 1: 12.0, 2: 17.0}
    assert workers.begun == ["trial0000_catch_seed1", "trial0000_catch_seed2"]
    assert result is not None
    assert result.is_complete


def test_the_objective_over_games_takes_every_seed_of_each_game_by_its_own_human_score(tmp_path: Path):
    normalised = {("pong", 1): 1.0, ("breakout", 1): 2.0, ("pong", 2): 3.0, ("breakout", 2): 6.0}

    def score(member: Member, frames: int) -> float:
        humans = human_random(member.game)
        assert humans is not None
        return humans.random + normalised[member.game, member.seed] * (humans.human - humans.random)

    record, folder = begun(tmp_path, TWO_GAMES)
    command(record, folder, score)
    (trial,) = trials_of(record, folder)
    assert (trial.state, trial.value) == ("complete", pytest.approx(3.0))
    assert trial.steps[len(trial.steps) - 2] == pytest.approx(1.5)  # the first seed, on both games


def test_a_lease_of_a_run_that_ended_goes_with_its_owner(tmp_path: Path):
    record, folder = begun(tmp_path, SPACE.replace("trials = 30", "trials = 1"))
    command(record, folder, constant)
    dead = replace(Owner.current(), pid=2**22 + 1)
    assert folder.runs.leases.take("trial0000_catch_seed1", dead) is not None
    command(record, folder, constant)
    assert folder.runs.leases.current() == {}


@pytest.mark.parametrize(
    "text", [SPACE, pytest.param(SPACE + PRUNING, marks=pytest.mark.slow)], ids=["complete", "pruned"]
)
def test_a_tune_killed_at_random_moments_has_the_trials_of_one_that_nothing_killed(tmp_path: Path, text: str):
    (tmp_path / "whole").mkdir()
    (tmp_path / "killed").mkdir()
    record, folder = begun(tmp_path / "whole", text)
    command(record, folder, planted)
    expected = trials_of(record, folder)
    assert len(expected) == 30
    assert {"pruned"} <= {trial.state for trial in expected} or "pruning" not in text
    chance = random.Random(1)
    record, folder = begun(tmp_path / "killed", text)
    kills = 0
    while command(record, folder, planted, kill_at=chance.randint(1, 12))[0] is None:
        kills += 1
    assert kills > 10
    assert same(trials_of(record, folder)) == same(expected)


def same(trials: list[object]) -> list[str]:
    return [str(trial) for trial in trials]  # NaN is not equal to itself


def test_a_trial_that_was_begun_and_not_ended_is_finished_from_its_runs(tmp_path: Path):
    record, folder = begun(tmp_path, SPACE.replace("trials = 30", "trials = 1"))
    command(record, folder, planted, kill_at=3)  # both runs have all rows, and have not finished
    (trial,) = trials_of(record, folder)
    assert trial.state == "running"
    for name in ("trial0000_catch_seed1", "trial0000_catch_seed2"):
        (folder.runs.path / name / "summary.json").write_text("{}")
        (folder.runs.path / name / "spec.toml").touch()
    _, workers = command(record, folder, planted)
    assert workers.begun == []
    assert [each.state for each in trials_of(record, folder)] == ["complete"]


def test_the_scores_of_another_run_under_the_name_of_a_trials_run_do_not_count(tmp_path: Path):
    record, folder = begun(tmp_path, SPACE.replace("trials = 30", "trials = 1"))
    command(record, folder, planted, kill_at=3)
    (trial,) = trials_of(record, folder)
    name, values = "trial0000_catch_seed1", trial_values(record, trial.settings)
    other = ResolvedSpec(spec=build({**values, "seed": 2}), name="other", deviations=())
    made = RunDirectory.create(tmp_path / "other", resolved_toml(other), spec_digest(other.spec), {})
    shutil.copytree(made.path, folder.runs.path / name, dirs_exist_ok=True)
    for run in folder.runs.path.glob("trial*"):
        (run / "summary.json").write_text("{}")
        (run / "spec.toml").touch()
    refusal = Failure(kind="invalid", reason="holds another run", exit_code=2)
    result, workers = command(record, folder, planted, trial0000_catch_seed1=refusal)
    assert workers.begun == [name]
    assert result is not None
    assert result.failure == (name, refusal)


def test_trial_that_was_begun_by_a_command_that_failed_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def fail(*_: object) -> None:
        raise KilledError

    record, folder = begun(tmp_path, CHOICE)
    with monkeypatch.context() as patch:
        patch.setattr(tuner, "members_of", fail)
        command(record, folder, constant)
    assert [trial.state for trial in trials_of(record, folder)] == ["running"]
    command(record, folder, constant)
    assert [trial.state for trial in trials_of(record, folder)] == ["complete"] * 8


def test_trial_that_an_earlier_version_began_with_auto_fails_alone(tmp_path: Path):
    record, folder = begun(tmp_path, CHOICE)
    key = "learner.precision"
    dimension = Dimension(key=key, kind="choice", choices=("auto", "bf16"), when={})
    old = replace(record, tune=replace(record.tune, space=(dimension,)), auto={})
    command(old, folder, lambda *_: 1.0)
    states = {str(trial.settings[key]): trial.state for trial in trials_of(old, folder)}
    assert states == {"auto": "failed", "bf16": "complete"}


def test_complete_trial_that_repeats_a_pruned_one_is_ranked_and_shown_with_its_values(tmp_path: Path):
    record, folder = begun(tmp_path, CHOICE)
    with folder.locked():
        log = TrialLog(folder, record.tune, writable=True)
        pruned = log.suggest()
        log.finish(pruned, "pruned", reason="worse than the median")
        while (repeat := log.suggest()).settings != pruned.settings:
            log.finish(repeat, "failed", reason="another")
        log.finish(repeat, "complete", 5.0)
        standing = read_standing(record, folder, log)
    assert standing.ranks == {repeat.number: 1}
    line = trial_line(standing.trials[repeat.number], standing, 80)
    assert line.endswith(f"n_step {pruned.settings['toggles.n_step']}")


def test_the_incomplete_line_of_a_killed_command_is_removed(tmp_path: Path):
    record, folder = begun(tmp_path, SPACE.replace("trials = 30", "trials = 3"))
    command(record, folder, planted)
    expected = trials_of(record, folder)
    lines = folder.log.read_bytes().splitlines(keepends=True)
    start_of_last = next(i for i, line in reversed(list(enumerate(lines))) if b'"op_code":4' in line)
    folder.log.write_bytes(b"".join(lines[:start_of_last]) + lines[start_of_last][:50])
    command(record, folder, planted)
    assert same(trials_of(record, folder)) == same(expected)


def test_trials_of_the_same_values_share_their_runs(tmp_path: Path):
    record, folder = begun(tmp_path, CHOICE)
    _, workers = command(record, folder, constant)
    trials = trials_of(record, folder)
    assert [trial.state for trial in trials] == ["complete"] * 8
    assert len(workers.begun) == len({trial.settings["toggles.n_step"] for trial in trials}) == 3
    ranked = read_standing(record, folder, TrialLog(folder, record.tune, writable=False)).ranked
    assert [trial.settings["toggles.n_step"] for trial in ranked] == [3, 2, 1]


def test_a_tune_without_a_number_of_trials_ends_when_nothing_new_is_tried(tmp_path: Path):
    record, folder = begun(tmp_path, CHOICE.replace("trials = 8", "hours = 1"))
    result, _ = command(record, folder, constant)
    assert result is not None
    assert result.is_complete
    assert MOST_REPEATED <= len(trials_of(record, folder)) < 500


def test_no_trial_begins_after_the_hours_of_the_budget(tmp_path: Path):
    record, folder = begun(tmp_path, SPACE.replace("trials = 30", "hours = 1"))
    (folder.path / "clock.json").write_text('{"seconds": 3600.5}')
    result, workers = command(record, folder, planted)
    assert (workers.begun, trials_of(record, folder)) == ([], [])
    assert result is not None
    assert result.is_complete


def test_a_raised_budget_goes_on_with_the_trials_of_one_that_was_so_large_from_the_start(tmp_path: Path):
    record, folder = begun(tmp_path, SPACE)
    small = replace(record, tune=replace(record.tune, budget=Budget(trials=12, hours=None)))
    command(small, folder, planted)
    assert len(trials_of(record, folder)) == 12
    command(record, folder, planted)
    (tmp_path / "whole").mkdir()
    other, whole = begun(tmp_path / "whole", SPACE)
    command(other, whole, planted)
    assert same(trials_of(record, folder)) == same(trials_of(other, whole))


def test_runs_are_stopped_after_the_evaluation_that_rates_them(tmp_path: Path):
    text = SPACE.replace("trials = 30", "trials = 2") + "[objective]\nat_frames = 600\n"
    record, folder = begun(tmp_path, text)
    _, workers = command(record, folder, planted)
    assert sorted(workers.stopped) == sorted(workers.begun)
    assert [trial.state for trial in trials_of(record, folder)] == ["complete", "complete"]


def test_a_pruned_trial_has_its_runs_stopped_and_says_why(tmp_path: Path):
    record, folder = begun(tmp_path, SPACE + PRUNING)
    _, workers = command(record, folder, planted)
    pruned = [trial for trial in trials_of(record, folder) if trial.state == "pruned"]
    assert pruned
    assert {trial.reason for trial in pruned} <= {
        "worse than the median after 1 seed at 600 frames",
        "worse than the median after 1 seed at 1,200 frames",
    }
    assert {f"trial{trial.number:04}" for trial in pruned} <= {name[:9] for name in workers.stopped}


def test_no_trial_is_pruned_before_the_frames_of_the_warmup(tmp_path: Path):
    record, folder = begun(tmp_path, f"{SPACE}{PRUNING}warmup_frames = 1_200\n")
    command(record, folder, planted)
    pruned = [trial.reason for trial in trials_of(record, folder) if trial.state == "pruned"]
    assert set(pruned) == {"worse than the median after 1 seed at 1,200 frames"}


def halted(folder: TuneFolder, name: str) -> dict[str, Failure]:
    """Return the failure of a run, recorded as the runner does."""
    failure = Failure(kind="halted", reason="loss is not finite", exit_code=3)
    write_failure_record(folder.runs.failure(name), failure)
    return {name: failure}


def test_a_halted_run_fails_its_trial_alone(tmp_path: Path):
    record, folder = begun(tmp_path, SPACE.replace("trials = 30", "trials = 3"))
    name = "trial0001_catch_seed2"
    result, _ = command(record, folder, planted, **halted(folder, name))
    trials = trials_of(record, folder)
    assert [trial.state for trial in trials] == ["complete", "failed", "complete"]
    assert trials[1].reason == f"{name}: loss is not finite"
    assert result is not None
    assert result.is_complete


def test_a_halted_run_is_not_tried_again_after_a_kill(tmp_path: Path):
    record, folder = begun(tmp_path, SPACE.replace("trials = 30", "trials = 1"))
    failures = halted(folder, "trial0000_catch_seed2")
    command(record, folder, planted, kill_at=2, **failures)
    _, workers = command(record, folder, planted)
    assert workers.begun == ["trial0000_catch_seed1"]
    assert [trial.state for trial in trials_of(record, folder)] == ["failed"]


def test_a_run_that_fails_for_another_reason_ends_the_command_and_not_its_trial(tmp_path: Path):
    record, folder = begun(tmp_path, SPACE.replace("trials = 30", "trials = 2"))
    failure = Failure(kind="invalid", reason="no space left on device", exit_code=2)
    result, workers = command(record, folder, planted, trial0000_catch_seed1=failure)
    assert result is not None
    assert (result.failure, result.is_complete) == (("trial0000_catch_seed1", failure), False)
    assert workers.stopped == ["trial0000_catch_seed2"]
    assert [trial.state for trial in trials_of(record, folder)] == ["running"]
    write_failure_record(folder.runs.failure("trial0000_catch_seed1"), failure)
    assert command(record, folder, planted)[0] is not None
    assert not folder.runs.failure("trial0000_catch_seed1").exists()
    assert [trial.state for trial in trials_of(record, folder)] == ["complete", "complete"]


def test_an_error_while_a_run_is_trained_ends_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def fail(workers: FakeWorkers) -> None:
        if workers.calls == 2:
            raise UserError("no space left on device")

    monkeypatch.setattr(FakeWorkers, "raise_error", fail)
    with pytest.raises(UserError, match="no space left"):
        command(*begun(tmp_path, CHOICE), constant)


def test_a_score_that_is_not_a_number_fails_its_trial(tmp_path: Path):
    record, folder = begun(tmp_path, SPACE.replace("trials = 30", "trials = 1"))
    command(record, folder, lambda member, frames: math.nan)
    (trial,) = trials_of(record, folder)
    assert (trial.state, trial.reason) == ("failed", "the score of 1 seed at 600 frames is not a number")


def test_trials_at_once_have_their_runs_at_the_same_time(tmp_path: Path):
    record, folder = begun(tmp_path, SPACE + "[sampler]\ntrials_at_once = 3\n")
    _, workers = command(record, folder, planted, kill_at=1)
    assert len(workers.begun) == 6
    command(record, folder, planted)
    assert [trial.state for trial in trials_of(record, folder)] == ["complete"] * 30


def test_another_seed_of_the_sampler_makes_other_trials(tmp_path: Path):
    found = []
    for seed in (0, 0, 1):
        place = tmp_path / f"{len(found)}"
        place.mkdir()
        record, folder = begun(place, SPACE.replace("30", "3") + f"[sampler]\nseed = {seed}\n")
        command(record, folder, planted)
        found.append(same(trials_of(record, folder)))
    assert found[0] == found[1] != found[2]
