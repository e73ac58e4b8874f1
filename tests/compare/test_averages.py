"""Scores are averaged over the frames over which a published figure is, or give no verdict."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from atari_dqn.compare.comparison import compare
from atari_dqn.compare.references import ComparedReference
from runs import make_run


def found(
    folder: Path, returns: Sequence[float], study: str, *, at_frames: int, **options: object
) -> ComparedReference:
    """Return the figure of a study for one seed that is evaluated every two million frames."""
    options = {"period_frames": 2_000_000, **options}
    run = make_run(folder / "run", returns, **options)  # type: ignore[arg-type]
    (result,) = compare([run], human_table="atari57", at_frames=at_frames).results
    return {each.reference.study.name: each for each in result.references}[study]


def test_an_evaluation_is_compared_with_a_mean_by_a_mean_over_the_same_frames(tmp_path: Path):
    returns = [-20.0, -20.0, -20.0, 1.0, 12.0, 8.0]
    compared = found(tmp_path, returns, "nnabla_dqn", at_frames=10_000_000)
    assert (compared.score, compared.verdict) == ((1.0 + 12.0 + 8.0) / 3, "on track")


def test_an_evaluation_at_the_end_of_a_run_is_not_compared_with_a_mean_beyond_it(tmp_path: Path):
    compared = found(tmp_path, [-20.0, -20.0, -20.0, 1.0, 12.0], "nnabla_dqn", at_frames=10_000_000)
    assert compared.verdict == ""
    assert compared.reference.differences == ("mean over 8M to 12M frames",)


TRAINING = {"spec": "dopamine_dqn.toml", "period_frames": 500_000, "training_return": -19.0}


@pytest.mark.parametrize(
    ("millions", "differences"), [(1, ("games while ε fell, until 1,080,000 frames",)), (5, ())]
)
def test_training_games_are_compared_once_epsilon_has_its_last_value(
    tmp_path: Path, millions: int, differences: tuple[str, ...]
):
    returns = [-20.0] * (2 * millions)
    compared = found(tmp_path, returns, "dopamine_jax", at_frames=millions * 1_000_000, **TRAINING)
    assert compared.reference.differences == differences


def test_training_games_with_a_constant_epsilon_are_compared_from_the_prefill_on(tmp_path: Path):
    constant = ["exploration.epsilon_start=0.01", "exploration.epsilon_end=0.01"]
    options = {**TRAINING, "overrides": constant}
    compared = found(tmp_path, [-20.0] * 4, "dopamine_jax", at_frames=2_000_000, **options)
    assert compared.reference.differences == ()


def test_training_games_of_an_iteration_are_averaged(tmp_path: Path):
    returns = [-21.0] * 8 + [-11.0, -8.0]  # the last two end within 4M to 5M frames
    options = {**TRAINING, "training_return": returns}
    compared = found(tmp_path, [-20.0] * 10, "dopamine_jax", at_frames=5_000_000, **options)
    assert (compared.score, compared.verdict) == (-9.5, "on track")


def test_cut_games_within_the_frames_of_a_mean_give_no_verdict(tmp_path: Path):
    returns = [-20.0, -20.0, -20.0, 1.0, 12.0, 8.0]
    compared = found(tmp_path, returns, "nnabla_dqn", at_frames=10_000_000, frame_caps=[0, 0, 0, 9, 0, 9])
    assert (compared.verdict, compared.reference.differences) == ("", ("games cut within 8M to 12M frames",))
