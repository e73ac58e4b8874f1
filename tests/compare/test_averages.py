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
    return figure_of([run], study, at_frames=at_frames)


def figure_of(seeds: Sequence[Path], study: str, *, at_frames: int) -> ComparedReference:
    """Return the figure of a study for several seeds."""
    (result,) = compare(seeds, human_table="atari57", at_frames=at_frames).results
    return {each.reference.study.name: each for each in result.references}[study]


def make_seeds(folder: Path, *returns: Sequence[float], caps: Sequence[int] = (0, 0, 0)) -> list[Path]:
    """Make seeds that are evaluated every two million frames; the cap cut these games of their last one."""
    return [
        make_run(
            folder / str(seed),
            scores,
            overrides=[f"seed={seed}"],
            period_frames=2_000_000,
            frame_caps=[*[0] * (len(scores) - 1), cut],
        )
        for seed, (scores, cut) in enumerate(zip(returns, caps, strict=False), start=1)
    ]


def test_an_evaluation_is_compared_with_a_mean_by_a_mean_over_the_same_frames(tmp_path: Path):
    returns = [-20.0, -20.0, -20.0, 1.0, 12.0, 8.0]
    compared = found(tmp_path, returns, "nnabla_dqn", at_frames=10_000_000)
    assert (compared.score, compared.verdict) == ((1.0 + 12.0 + 8.0) / 3, "on track")


def test_an_evaluation_at_the_end_of_a_run_is_not_compared_with_a_mean_beyond_it(tmp_path: Path):
    compared = found(tmp_path, [-20.0, -20.0, -20.0, 1.0, 12.0], "nnabla_dqn", at_frames=10_000_000)
    assert compared.verdict == ""
    assert compared.reference.differences[0].startswith("mean over 8M to 12M frames")


def test_frames_at_which_the_runs_can_be_compared_are_named_and_give_a_verdict(tmp_path: Path):
    returns = [-20.0, -20.0, -20.0, 1.0, 12.0, 8.0]
    at_the_end = found(tmp_path, returns, "nnabla_dqn", at_frames=12_000_000)
    assert at_the_end.reference.differences == (
        "mean over 10M to 14M frames (earlier: `dqn compare --at 10,000,000`)",
    )
    assert figure_of([tmp_path / "run"], "nnabla_dqn", at_frames=10_000_000).verdict == "on track"


def test_no_frames_are_named_at_which_games_were_cut(tmp_path: Path):
    returns = [-20.0, -20.0, -20.0, 1.0, 12.0, 8.0]
    compared = found(tmp_path, returns, "nnabla_dqn", at_frames=12_000_000, frame_caps=[0, 0, 0, 9, 0, 0])
    assert compared.reference.differences == ("mean over 10M to 14M frames",)


def test_no_frames_are_named_if_the_protocol_differs_as_well(tmp_path: Path):
    options = {"overrides": ["evaluation.epsilon=0.01"]}
    compared = found(tmp_path, [-20.0] * 6, "nnabla_dqn", at_frames=12_000_000, **options)
    assert compared.reference.differences == ("ε 0.05", "mean over 10M to 14M frames")


def test_an_evaluation_a_whole_iteration_after_the_frames_of_a_mean_does_not_count(tmp_path: Path):
    run = make_run(tmp_path / "run", [*EARLY, 1.0, 12.0, 8.0], period_frames=2_000_000)
    table = run / "eval_log.csv"
    table.write_text(table.read_text().replace(",12000000,", ",12000004,"))
    assert figure_of([run], "nnabla_dqn", at_frames=10_000_000).score == (1.0 + 12.0) / 2


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


@pytest.mark.parametrize(
    ("decay_frames", "differences"),
    [(3_920_000, ()), (3_920_004, ("games while ε fell, until 4,000,004 frames",))],
)
def test_training_games_are_compared_if_epsilon_has_its_last_value_where_their_frames_begin(
    tmp_path: Path, decay_frames: int, differences: tuple[str, ...]
):
    options = {**TRAINING, "overrides": [f"exploration.epsilon_decay_frames={decay_frames}"]}
    compared = found(tmp_path, [-20.0] * 10, "dopamine_jax", at_frames=5_000_000, **options)
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


EARLY = [-20.0] * 3
"""The evaluations up to 6M frames; a figure at 10M frames is a mean over those from 8M to 12M frames."""


def test_mean_of_several_seeds_is_over_those_with_a_score(tmp_path: Path):
    seeds = make_seeds(tmp_path, [*EARLY, 1.0, 12.0, 8.0], [*EARLY, 4.0, 6.0, 8.0], [*EARLY, 20.0])
    compared = figure_of(seeds, "nnabla_dqn", at_frames=10_000_000)
    assert (compared.n, compared.score, compared.verdict) == (2, (7.0 + 6.0) / 2, "on track")


def test_one_seed_that_ends_before_the_frames_of_a_mean_do_prevents_its_verdict(tmp_path: Path):
    seeds = make_seeds(tmp_path, [*EARLY, 1.0, 12.0, 8.0], [*EARLY, 1.0, 12.0])
    compared = figure_of(seeds, "nnabla_dqn", at_frames=10_000_000)
    reason = "mean over 8M to 12M frames (earlier: `dqn compare --at 8,000,000`)"
    assert (compared.verdict, compared.reference.differences) == ("", (reason,))


def test_one_seed_with_cut_games_within_the_frames_of_a_mean_prevents_its_verdict(tmp_path: Path):
    seeds = make_seeds(tmp_path, [*EARLY, 1.0, 12.0, 8.0], [*EARLY, 1.0, 12.0, 8.0], caps=[0, 9])
    compared = figure_of(seeds, "nnabla_dqn", at_frames=10_000_000)
    assert (compared.verdict, compared.reference.differences) == ("", ("games cut within 8M to 12M frames",))


def test_training_return_of_several_seeds_is_over_those_with_a_score(tmp_path: Path):
    seeds = [
        make_run(
            tmp_path / str(seed),
            [-20.0] * evaluations,
            spec="dopamine_dqn.toml",
            overrides=[f"seed={seed}"],
            training_return=returns,
        )
        for seed, (evaluations, returns) in enumerate([(2, -19.0), (2, -17.0), (1, 20.0)], start=1)
    ]
    compared = figure_of(seeds, "dopamine_jax", at_frames=1_000_000)
    assert (compared.measure, compared.n, compared.score) == ("training", 2, -18.0)
