"""Make the tables of compare/reference from the collected figures.

python scripts/make_reference.py FOLDER NNABLA_RL DOPAMINE

FOLDER holds the CSV files with one row per seed; its README says how they were collected. The other two are
clones, for the figures between its milestones (nnabla_rl_evaluations.py, dopamine_iterations.py). Here the
seeds of one study, agent, game and frame count become their mean, lowest, highest and number. Left out:
figures from human starts, whose starting states are not public; recurrent networks and flickering screens,
which are another task; Atari 100k's human and random columns, which human_random.csv has; and frame counts
that no table of ours asks for. The Atari 100k column that was recalled from memory is a study of its own.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import polars as pl
from dopamine_iterations import iterations
from nnabla_rl_evaluations import ALGORITHMS, evaluations

TABLES = Path(__file__).parents[1] / "atari_dqn" / "compare" / "reference"
MILESTONES_FRAMES = [millions * 1_000_000 for millions in (1, 2, 5, 10, 20, 30, 40, 50, 100, 150, 200)]
BETWEEN_FRAMES = [millions * 1_000_000 for millions in (3, 4, 6, 7, 8, 9)]
"""Below 10M figures are of one evaluation or iteration, at milestones and between them."""
KEYS = ["study", "agent", "game", "env_frames"]
COLUMNS = [*KEYS, "mean", "lowest", "highest", "n", "copies"]
BUDGET_FRAMES = 200_000_000
ATARI_100K_FRAMES = 400_000

PAPER_STUDIES = {
    "Mnih et al. 2015 (Nature) Ext. Data Table 2": "mnih2015",
    "van Hasselt et al. 2016 (1509.06461)": "hasselt2016",
    "Wang et al. 2016 (1511.06581) Table 2": "wang2016",
    "Hessel et al. 2018 (1710.02298) Table 6": "hessel2018",
    "Bellemare et al. 2017 (1707.06887)": "bellemare2017",
    "Fortunato et al. 2018 (1706.10295)": "fortunato2018",
    "Dabney et al. 2018a (1710.10044)": "dabney2018a",
    "Dabney et al. 2018b (1806.06923)": "dabney2018b",
    "Horgan et al. 2018 (1803.00933)": "horgan2018",
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="the folder of the collected figures")
    parser.add_argument("nnabla_rl", type=Path, help="a clone of sony/nnabla-rl")
    parser.add_argument("dopamine", type=Path, help="a clone of google/dopamine")
    options = parser.parse_args()
    folder = options.folder
    parts = [
        track_a(folder),
        track_a_between_milestones(options.nnabla_rl),
        best_of_track_a(folder),
        sticky(folder),
        sticky_between_milestones(options.dopamine),
        papers(folder),
        atari_100k(folder),
    ]
    scores = pl.concat([part.select(COLUMNS) for part in parts]).sort(KEYS)
    assert scores.select(pl.struct(KEYS).is_unique().all()).item(), "a cell appears twice"
    scores.write_csv(TABLES / "scores.csv", float_precision=None)
    human_random(folder).write_csv(TABLES / "human_random.csv")
    print(f"{scores.height:,} rows of {scores['study'].n_unique()} studies")


def track_a(folder: Path) -> pl.DataFrame:
    rows = _read(folder, "curves_track_a.csv").with_columns(study=_track_a_study("nnabla"))
    rows = rows.filter(pl.col("frames").is_in(MILESTONES_FRAMES), ~pl.col("agent").str.starts_with("drqn"))
    return _over_seeds(rows.rename({"frames": "env_frames"}), "eval_mean_return")


def track_a_between_milestones(clone: Path) -> pl.DataFrame:
    rows = evaluations(clone, *ALGORITHMS).filter(pl.col("env_frames").is_in(BETWEEN_FRAMES))
    return _over_seeds(rows.with_columns(study=_track_a_study("nnabla")), "mean_return")


def best_of_track_a(folder: Path) -> pl.DataFrame:
    """Return the best evaluation of each run, which is a figure of the whole budget."""
    rows = _read(folder, "best_track_a.csv").with_columns(
        study=_track_a_study("nnabla_best"), env_frames=pl.lit(BUDGET_FRAMES, pl.Int64)
    )
    return _over_seeds(rows.filter(~pl.col("agent").str.starts_with("drqn")), "best_mean_return")


def _track_a_study(prefix: str) -> pl.Expr:
    """Return the study of an agent: the agents' scripts differ in evaluation ε and in the cap."""
    agent = pl.col("agent")
    return (
        pl.when(agent.str.starts_with("rainbow"))
        .then(pl.lit(f"{prefix}_rainbow"))
        .when(agent.is_in(["dqn", "double_dqn"]))
        .then(pl.lit(f"{prefix}_dqn"))
        .otherwise(pl.lit(f"{prefix}_distributional"))
    )


def sticky(folder: Path) -> pl.DataFrame:
    rows = pl.concat([_read(folder, f"curves_sticky{part}.csv") for part in ("", "_extra")])
    impala = pl.col("agent").str.ends_with("_impala")
    rows = rows.with_columns(
        study=pl.format(
            "dopamine_{}{}", "codebase", pl.when(impala).then(pl.lit("_impala")).otherwise(pl.lit(""))
        ),
        agent=pl.col("agent").str.strip_suffix("_impala"),
    )
    rows = rows.filter(pl.col("frames").is_in(MILESTONES_FRAMES))
    return _over_seeds(rows.rename({"frames": "env_frames"}), "train_mean_return")


def sticky_between_milestones(clone: Path) -> pl.DataFrame:
    rows = iterations(clone).filter(pl.col("env_frames").is_in(BETWEEN_FRAMES))
    return _over_seeds(rows.with_columns(study=pl.format("dopamine_{}", "codebase")), "mean_return")


def papers(folder: Path) -> pl.DataFrame:
    rows = _read(folder, "paper_scores.csv").filter(pl.col("starts") == "noop")
    variant = pl.col("variant").fill_null("")
    agent = (
        pl.when(variant == "rank").then(pl.format("rank_{}", "agent"))
        .when(variant == "qr_dqn_0").then(pl.lit("qr_dqn_0"))
        .otherwise("agent")
    )  # fmt: skip
    study = pl.col("paper").replace_strict(PAPER_STUDIES)
    own_cap = variant == "own_5min"
    rows = rows.with_columns(agent=agent, study=pl.when(own_cap).then(pl.lit("hasselt2016")).otherwise(study))
    return _single(rows.rename({"frames": "env_frames", "n_sources": "copies"}).with_columns(n=pl.lit(1)))


def atari_100k(folder: Path) -> pl.DataFrame:
    rows = _read(folder, "atari100k.csv").filter(~pl.col("agent").is_in(["human", "random"]))
    recalled = pl.col("status") == "recalled_aggregate_checked"
    copies = pl.col("status").str.extract(r"sourced_(\d)").cast(pl.Int64)
    rows = rows.with_columns(
        study=pl.when(recalled).then(pl.lit("atari_100k_recalled")).otherwise(pl.lit("atari_100k")),
        env_frames=pl.lit(ATARI_100K_FRAMES, pl.Int64),
        copies=copies,
        n=pl.col("runs"),
    )
    return _single(rows)


def _single(rows: pl.DataFrame) -> pl.DataFrame:
    """Return figures that were printed as one number, without a spread; n is empty where it is not stated."""
    nothing = pl.lit(None, pl.Float64)
    return rows.with_columns(pl.col("n").cast(pl.Int64), mean="score", lowest=nothing, highest=nothing)


def _over_seeds(rows: pl.DataFrame, value: str) -> pl.DataFrame:
    figures = rows.group_by(KEYS).agg(
        mean=pl.col(value).mean().round(3),
        lowest=pl.col(value).min(),
        highest=pl.col(value).max(),
        n=pl.len().cast(pl.Int64),
    )
    return figures.with_columns(copies=pl.lit(None, pl.Int64))


def human_random(folder: Path) -> pl.DataFrame:
    return (
        _read(folder, "human_random.csv")
        .select(pl.col("human_table").alias("table"), "game", "random", "human")
        .sort("table", "game")
    )


def _read(folder: Path, name: str) -> pl.DataFrame:
    return pl.read_csv(folder / name, infer_schema_length=None, schema_overrides={"score": pl.Float64})


if __name__ == "__main__":
    main()
