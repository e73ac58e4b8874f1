import math
import os
import re
import tomllib
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import polars as pl
import pytest

from atari_dqn.compare.reference.studies import Figure, curves, human_random, studies
from atari_dqn.spec.games import SINGLE_PLAYER_GAMES

REPOSITORY = Path(__file__).parents[2]
COLLECTED = Path(os.environ.get("ATARI_DQN_REFERENCE", REPOSITORY.parent / "shared" / "reference"))
"""The collected figures, seed by seed, from which the tables were made."""


def figures(game: str) -> Iterator[Figure]:
    return chain.from_iterable(curves(game).values())


def of(game: str, study: str, agent: str, env_frames: int) -> Figure:
    (found,) = [
        figure
        for figure in figures(game)
        if (figure.study, figure.agent, figure.env_frames) == (study, agent, env_frames)
    ]
    return found


def test_curve_is_mean_lowest_and_highest_over_seeds():
    figure = of("pong", "nnabla_dqn", "dqn", 10_000_000)
    assert figure.mean == pytest.approx((11.83 + 0.12 + 3.812) / 3, abs=5e-4)
    assert (figure.lowest, figure.highest, figure.n) == (0.12, 11.83, 3)


def test_paper_score_has_no_spread():
    figure = of("breakout", "mnih2015", "dqn", 200_000_000)
    assert (figure.mean, figure.lowest, figure.highest, figure.n) == (401.2, None, None, 1)


def test_number_of_seeds_that_no_source_states_is_none():
    assert of("alien", "atari_100k", "bbf_schwarzer2023", 400_000).n is None


@pytest.mark.parametrize(("table", "human"), [("atari57", 42054.7), ("nature2015", 20181.8)])
def test_human_score_is_that_of_its_table(table: str, human: float):
    assert human_random("seaquest", table).human == human


def test_random_play_is_0_and_human_play_1():
    pong = human_random("pong")
    assert (pong.normalised(-20.7), pong.normalised(14.6)) == (0.0, 1.0)


def test_game_outside_the_table_has_no_human_score():
    assert human_random("adventure") is None


def test_every_figure_is_of_a_described_study_and_a_known_game():
    rows = pl.read_csv(REPOSITORY / "atari_dqn/compare/reference" / "scores.csv")
    assert set(rows["study"]) == set(studies())
    assert set(rows["game"]) <= set(SINGLE_PLAYER_GAMES)


@pytest.mark.parametrize("page", ["README.md", "CHANGELOG.md", "docs/comparing.md"])
def test_pages_count_the_published_figures(page: str):
    rows = pl.read_csv(REPOSITORY / "atari_dqn/compare/reference" / "scores.csv")
    counts = re.findall(
        r"([\d,]+) (?:published )?(?:figures|scores) of (\d+)\s+studies", (REPOSITORY / page).read_text()
    )
    assert counts == [(f"{rows.height:,}", str(rows["study"].n_unique()))]


def test_every_study_says_source_and_licence():
    assert all(study.source and study.licence and study.protocol for study in studies().values())


def test_agents_with_another_name_are_agents_of_their_study():
    rows = pl.read_csv(REPOSITORY / "atari_dqn/compare/reference" / "scores.csv")
    known = set(rows.select("study", "agent").unique().iter_rows())
    renamed = {(study.name, agent) for study in studies().values() for agent in study.agents}
    assert ("dopamine_tf", "rainbow") in renamed
    assert renamed <= known


def test_a_mean_lies_within_its_spread():
    spread = [f for game in SINGLE_PLAYER_GAMES for f in figures(game) if f.lowest is not None]
    assert len(spread) > 12_000
    assert all(f.lowest - 1e-3 <= f.mean <= f.highest + 1e-3 for f in spread)


@pytest.fixture(scope="module")
def seeds() -> pl.DataFrame:
    """All collected figures of single seeds, with the names of the tables."""
    if not COLLECTED.is_dir():
        pytest.skip(
            f"the collected figures are not here: {COLLECTED}; ATARI_DQN_REFERENCE names another folder"
        )
    parts = {
        "curves_track_a": ("nnabla", "eval_mean_return"),
        "curves_sticky": ("dopamine", "train_mean_return"),
        "curves_sticky_extra": ("dopamine", "train_mean_return"),
    }
    tables = [
        pl.read_csv(COLLECTED / f"{name}.csv", infer_schema_length=None).select(
            "game", "agent", "frames", codebase="codebase" if prefix == "dopamine" else pl.lit(""),
            prefix=pl.lit(prefix), value=pl.col(value).cast(pl.Float64),
        )
        for name, (prefix, value) in parts.items()
    ]  # fmt: skip
    return pl.concat(tables)


@pytest.mark.parametrize(
    ("sweep", "study"), [("track_a_10m", "nnabla_dqn"), ("dopamine_10m", "dopamine_jax")]
)
def test_sweep_for_verdicts_at_ten_million_frames_reaches_the_last_of_the_averaged_frames(
    sweep: str, study: str
):
    averaging = studies()[study].averaging
    assert averaging is not None
    budget = tomllib.loads((REPOSITORY / f"runs/sweeps/{sweep}.toml").read_text())["set"]
    assert averaging.window(10_000_000)[1] <= budget["training"]["total_frames"]


@pytest.mark.parametrize("game", ["breakout", "pong"])
@pytest.mark.parametrize("millions", range(1, 11))
def test_figure_of_nnabla_rl_is_of_the_evaluations_of_its_seeds(game: str, millions: int):
    figure = of(game, "nnabla_dqn", "dqn", 1_000_000 * millions)
    within = 0 if millions < 10 else 2_000_000
    at = (pl.col("env_frames") - figure.env_frames).abs() <= within
    rows = pl.read_csv(REPOSITORY / "docs/results/track_a/published.csv").filter(pl.col("game") == game, at)
    seeds = rows.group_by("seed").agg(pl.col("mean_return").mean())["mean_return"]
    assert (figure.mean, figure.lowest, figure.highest) == pytest.approx(
        (seeds.mean(), seeds.min(), seeds.max()), abs=6e-4
    )


@pytest.fixture(scope="module")
def cells() -> list[Figure]:
    """Return 30 cells spread over the curves of every study, at milestones that were collected by seed."""
    every = [
        figure
        for game in SINGLE_PLAYER_GAMES
        for figure in figures(game)
        if figure.lowest is not None
        and not figure.study.startswith("nnabla_best")
        and figure.env_frames // 1_000_000 not in (3, 4, 6, 7, 8, 9)
    ]
    return every[:: len(every) // 29][:30]


@pytest.mark.parametrize("number", range(30))
def test_cell_is_what_was_collected(number: int, cells: list[Figure], seeds: pl.DataFrame):
    cell = cells[number]
    impala = cell.study.endswith("_impala")
    codebase = cell.study.removeprefix("dopamine_").removesuffix("_impala")
    values = seeds.filter(
        pl.col("game") == cell.game,
        pl.col("agent") == cell.agent + "_impala" * impala,
        pl.col("frames") == cell.env_frames,
        pl.col("codebase") == ("" if cell.study.startswith("nnabla") else codebase),
    )["value"].to_list()
    assert len(values) == cell.n
    assert math.isclose(sum(values) / len(values), cell.mean, abs_tol=6e-4)
    assert (min(values), max(values)) == (cell.lowest, cell.highest)
