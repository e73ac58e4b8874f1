"""The objective and the median rule, worked by hand."""

import math
import random
from dataclasses import replace
from pathlib import Path

import pytest
from tuning import HEADER, TINY, begun

from atari_dqn.scale.tuning.evaluations import FullEvaluations
from atari_dqn.scale.tuning.pruning import Step, is_pruned, steps_of
from atari_dqn.scale.tuning.scores import SCORES, objective_text, statistic_of
from atari_dqn.scale.tuning.study import Trial, TrialLog
from atari_dqn.scale.tuning.tune import Objective
from atari_dqn.scale.tuning.tune_file import load_tune


def test_the_mean_is_over_the_means_of_games():
    assert statistic_of("mean", [[1.0, 10.0], [3.0, 20.0]]) == 8.5


def test_the_interquartile_mean_leaves_a_quarter_out_at_each_end():
    assert statistic_of("iqm", [[100.0], [2.0], [4.0], [-50.0]]) == 3.0
    assert statistic_of("iqm", [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 80.0]]) == 4.5


def test_a_score_that_is_not_a_number_makes_the_objective_none():
    assert math.isnan(statistic_of("mean", [[1.0], [math.nan]]))
    assert math.isnan(statistic_of("iqm", [[1.0], [2.0], [3.0], [math.inf]]))


def test_the_human_normalised_score_is_0_for_random_and_1_for_human():
    score = SCORES["human_normalised"]
    assert score.of("pong", -20.7) == pytest.approx(0.0)
    assert score.of("pong", 14.6) == pytest.approx(1.0)
    assert SCORES["mean_return"].of("pong", 14.6) == 14.6


def test_an_objective_is_described_with_its_unit_and_frame():
    objective = Objective(
        score="human_normalised", statistic="iqm", at_frames=2_000_000, direction="maximize"
    )
    assert objective_text(objective, 3, ["pong", "qbert"]) == (
        "maximize the IQM over 3 seeds and 2 games of human_normalised (mean return, human-normalised: "
        "0 random, 1 human, table atari57) of the full evaluation at 2,000,000 frames"
    )


def test_steps_are_the_evaluations_of_the_first_seed_and_the_end_of_each_other(tmp_path: Path):
    path = tmp_path / "mine.toml"
    path.write_text(
        f'spec = "{TINY}"\nseeds = 3\n[budget]\ntrials = 1\n[space]\n'
        "toggles.double = { choice = [true, false] }\n"
    )
    assert steps_of(load_tune(path)) == (Step(1, 600), Step(1, 1_200), Step(2, 1_200), Step(3, 1_200))


def trial(number: int, *values: float, state: str = "complete") -> Trial:
    return Trial(
        number=number,
        settings={"seed": number},
        state=state,
        value=values[-1],
        steps=dict(enumerate(values)),  # type: ignore[arg-type]
    )


EARLIER = [trial(0, 1.0, 5.0), trial(1, 2.0, 7.0), trial(2, 3.0, 9.0), trial(3, 50.0, state="pruned")]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1.9], True),  # the median of 1, 2, 3 is 2
        ([2.0], False),
        ([1.9, 6.9], True),  # the median of 5, 7, 9 is 7
        ([8.0, 1.0], False),  # its best value so far is 8
    ],
)
def test_a_trial_is_pruned_below_the_median_of_complete_trials(values: list[float], expected: bool):
    assert is_pruned(values, EARLIER, maximize=True, startup_trials=3) is expected


def test_nothing_is_pruned_before_enough_trials_are_complete():
    assert not is_pruned([0.0], EARLIER, maximize=True, startup_trials=4)


def test_trials_that_repeat_values_count_once_in_the_median():
    repeats = [replace(EARLIER[0], number=number) for number in range(4, 9)]
    assert is_pruned([1.9], [*EARLIER, *repeats], maximize=True, startup_trials=3)  # with them it would be 1


def test_trials_that_repeat_values_are_not_enough_to_prune():
    repeats = [replace(EARLIER[0], number=number) for number in range(4, 9)]
    assert not is_pruned([0.0], [*EARLIER, *repeats], maximize=True, startup_trials=4)


def test_a_minimum_is_pruned_above_the_median():
    assert is_pruned([2.1], EARLIER, maximize=False, startup_trials=3)
    assert not is_pruned([1.9], EARLIER, maximize=False, startup_trials=3)


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_the_rule_is_that_of_optunas_median_pruner(direction: str):
    import optuna

    chance = random.Random(2)
    study = optuna.create_study(direction=direction)
    earlier = []
    for number in range(40):
        values = [chance.gauss(0, 1) for _ in range(3)]
        asked = study.ask()
        for step, value in enumerate(values):
            asked.report(value, step)
            ours = is_pruned(values[: step + 1], earlier, maximize=direction == "maximize", startup_trials=5)
            frozen = study.trials[number]
            assert ours == optuna.pruners.MedianPruner(n_startup_trials=5).prune(study, frozen)
        study.tell(asked, values[-1])
        earlier.append(trial(number, *values))


def test_an_evaluation_is_that_which_was_due_at_the_frame(tmp_path: Path):
    (tmp_path / "eval_log.csv").write_text(
        f"{HEADER}\n1,600,light,2,1,1,1,1,9,a\n1,632,full,3,2,1,1,1,9,b\n2,1200,final,3,4,1,1,1,9,c\n3,1800,full,3,5"
    )
    found = FullEvaluations(tmp_path)
    assert found.at(600, 64) is None
    found.refresh()
    assert found.at(600, 32) is None
    first, last = found.at(600, 64), found.at(1_200, 64)
    assert first is not None
    assert last is not None
    assert (first.columns["mean_return"], first.protocol_digest) == (2.0, "b")
    assert (last.at_frames, last.columns["mean_return"]) == (1_200, 4.0)
    assert found.at(1_800, 64) is None  # its row is not complete


def test_a_run_that_has_not_begun_has_no_evaluation(tmp_path: Path):
    found = FullEvaluations(tmp_path / "nothing")
    found.refresh()
    assert found.at(600, 4) is None


def test_values_are_suggested_by_the_seed_and_the_trials_before_alone(tmp_path: Path):
    text = f'spec = "{TINY}"\n[space]\nlearner.discount = {{ uniform = [0.1, 0.9] }}\n[budget]\ntrials = 1\n'
    record, folder = begun(tmp_path, text)
    log = TrialLog(folder, record.tune, writable=True)
    first = log.suggest()
    log.finish(first, "complete", 1.0)
    second = log.suggest()
    again, other = begun(tmp_path, text)
    other.log.unlink()
    repeated = TrialLog(other, again.tune, writable=True)
    assert repeated.suggest().settings == first.settings
    repeated.finish(first, "complete", 1.0)
    assert repeated.suggest().settings == second.settings != first.settings
