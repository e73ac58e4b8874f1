"""Keep the scores of `dqn sweep recall`, and make their page: a table, and a plot of the learning curves.

Recall is the toy game that no agent without memory can score more than 0 in (`atari_dqn/envs/recall.py`).
The sweep keeps each finished run and continues where it was stopped. The page is made from the CSV alone:

dqn sweep recall
python benchmarks/recall.py outputs/recall        the CSV, the plot and the page
python benchmarks/recall.py                       the plot and the page, from the CSV that is there
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean

import matplotlib.pyplot as plt
import polars as pl

RESULTS = Path(__file__).parents[1] / "docs" / "results"
TABLE, PLOT, PAGE = Path("recall/evaluations.csv"), Path("recall/curves.png"), Path("recall.md")
METHODS = {
    "r2d2": "R2D2",
    "drqn": "DRQN",
    "dqn_4_frames": "DQN, 4 frames",
    "dqn_1_frame": "DQN, 1 frame",
}
BEST, CHANCE, TRIALS = 5.0, 0.0, 5
_MEMBER = re.compile(r"(\w+)_recall_seed(\d+)")
_KEPT = ("env_frames", "eval_type", "episodes", "mean_return", "std_return")

TEXT = """\
# Is memory what Recall needs?

[Recall](../algorithms.md#games-with-a-hidden-state) is a toy game. An agent that remembers a light over ten
dark steps scores 5. The mean score of an agent without memory is 0 at most, whatever it learns; that of
random play is −1.67. The scores of {games} games after {frames:,} frames, by seed:

{head}
{line}
{rows}

All agents have the same frames, exploration, optimizer and number of updates. Their convolutions and hidden
layers have the same sizes ([recall.toml](../../runs/sweeps/recall.toml)). An answer is worth 1 or −1, so
that the standard error of a score at chance is {error:.1f} for {games} games with five answers each. Agents
of one seed play the same games: those that always answer with one side have equal scores.

![Score by frames: {agents}]({plot})

{circumstances}. Made by `dqn sweep recall` and
`python benchmarks/recall.py outputs/recall` from [evaluations.csv]({table}).
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sweep", nargs="?", type=Path, help="the folder of the sweep")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    table = options.out / TABLE
    if options.sweep:
        table.parent.mkdir(parents=True, exist_ok=True)
        pl.concat(evaluations(options.sweep)).sort("method", "seed", "env_frames").write_csv(table)
    rows = pl.read_csv(table)
    draw(rows, options.out / PLOT)
    (options.out / PAGE).write_text(page(rows), encoding="utf-8")
    print(page(rows))


def evaluations(sweep: Path) -> Iterator[pl.DataFrame]:
    """Yield the evaluations of each finished run, and how it was made."""
    for run in sorted(sweep.iterdir()):
        member = _MEMBER.fullmatch(run.name)
        if not member or not (run / "summary.json").exists():
            continue
        made = json.loads((run / "provenance.json").read_text())
        yield pl.read_csv(run / "eval_log.csv").select(
            pl.lit(member[1]).alias("method"),
            pl.lit(int(member[2])).alias("seed"),
            *_KEPT,
            pl.lit(made["started"][:10]).alias("date"),
            pl.lit(made["hardware"]["cpu_model"]).alias("cpu_model"),
            pl.lit(made["versions"]["torch"]).alias("torch"),
        )


def final_scores(rows: pl.DataFrame, method: str) -> dict[int, float]:
    """Return the score of the final evaluation of each seed."""
    final = rows.filter((pl.col("eval_type") == "final") & (pl.col("method") == method))
    return dict(zip(final["seed"], final["mean_return"], strict=True))


def page(rows: pl.DataFrame) -> str:
    """Make the page."""
    final = rows.filter(pl.col("eval_type") == "final")
    seeds = sorted(final["seed"].unique())
    games, frames = int(final["episodes"].to_numpy().max()), int(final["env_frames"].to_numpy().max())
    return TEXT.format(
        table=TABLE,
        plot=PLOT,
        agents=", ".join(METHODS.values()),
        games=games,
        frames=frames,
        head=f"| agent | {' | '.join(f'seed {seed}' for seed in seeds)} | mean | of the best score |",
        line="|---|" + "---|" * (len(seeds) + 2),
        rows="\n".join(table_row(rows, method, seeds) for method in METHODS),
        error=TRIALS**0.5 / games**0.5,
        circumstances=circumstances(rows),
    )


def table_row(rows: pl.DataFrame, method: str, seeds: list[int]) -> str:
    """Format a method's scores, its mean and the share of the best score."""
    found = final_scores(rows, method)
    mean = fmean(found.values())
    cells = [score(found[seed]) if seed in found else "–" for seed in seeds]
    return f"| {METHODS[method]} | {' | '.join(cells)} | {score(mean)} | {mean / BEST:.0%} |".replace(
        "-", "−"
    )


def score(value: float) -> str:
    """Format a score; a negative zero has no sign."""
    return f"{round(value, 2) + 0.0:.2f}"


def circumstances(rows: pl.DataFrame) -> str:
    """Say when and where the runs were made."""
    dates, models, versions = (
        " and ".join(sorted(set(rows[name]))) for name in ("date", "cpu_model", "torch")
    )
    return f"One thread of a shared {models}, torch {versions}, {dates}"


def draw(rows: pl.DataFrame, path: Path) -> None:
    """Draw the score of every seed by frames, a color for each method."""
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    for number, (method, label) in enumerate(METHODS.items()):
        own = rows.filter(pl.col("method") == method)
        for seed in sorted(own["seed"].unique()):
            curve = own.filter(pl.col("seed") == seed)
            axes.plot(
                curve["env_frames"] / 1000, curve["mean_return"], color=f"C{number}", marker="o",
                markersize=3, label=label,
            )  # fmt: skip
            label = ""
    axes.axhline(BEST, color="0.5", linestyle=":")
    axes.axhline(CHANCE, color="0.5", linestyle=":")
    axes.set_xlabel("emulator frames (thousands)")
    axes.set_ylabel("score of an evaluation")
    axes.legend(loc="center right")
    figure.savefig(path, dpi=110, metadata={"Software": None})


if __name__ == "__main__":
    main()
