"""What the pages on agents with memory share: the evaluations of a sweep as one table, and its curves."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import matplotlib.pyplot as plt
import polars as pl

RESULTS = Path(__file__).parents[1] / "docs" / "results"
_KEPT = ("env_frames", "eval_type", "episodes", "mean_return", "std_return")


def make_page(
    doc: str,
    name: str,
    game: str,
    page: Callable[[pl.DataFrame], str],
    draw: Callable[[pl.DataFrame, Path], None],
) -> None:
    """Keep the evaluations of the sweep that the command names, if any; make plot and page of those kept."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sweep", nargs="?", type=Path, help="the folder of the sweep")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    table = options.out / name / "evaluations.csv"
    if options.sweep:
        table.parent.mkdir(parents=True, exist_ok=True)
        found = pl.concat(evaluations(options.sweep, game))
        found.sort("method", "seed", "env_frames").write_csv(table)
    rows = pl.read_csv(table)
    draw(rows, options.out / name / "curves.png")
    (options.out / f"{name}.md").write_text(page(rows), encoding="utf-8")
    print(page(rows))


def evaluations(sweep: Path, game: str) -> Iterator[pl.DataFrame]:
    """Yield the evaluations of each finished run of a sweep, and how it was made."""
    member = re.compile(rf"(\w+)_{game}_seed(\d+)")
    for run in sorted(sweep.iterdir()):
        named = member.fullmatch(run.name)
        if not named or not (run / "summary.json").exists():
            continue
        made = json.loads((run / "provenance.json").read_text())
        yield with_state_norm(pl.read_csv(run / "eval_log.csv"), run).select(
            pl.lit(named[1]).alias("method"),
            pl.lit(int(named[2])).alias("seed"),
            *_KEPT,
            "state_norm",
            pl.lit(made["started"][:10]).alias("date"),
            pl.lit(made["hardware"]["cpu_model"]).alias("cpu_model"),
            pl.lit(made["versions"]["torch"]).alias("torch"),
        )


def with_state_norm(scores: pl.DataFrame, run: Path) -> pl.DataFrame:
    """Add the norm of the recurrent state at the last report before each evaluation; null without memory."""
    reports = pl.read_csv(run / "memory_log.csv", infer_schema=False).select(
        pl.col("env_frames").cast(pl.Int64), pl.col("state_norm").cast(pl.Float64)
    )
    return scores.join_asof(reports.drop_nulls(), on="env_frames", strategy="backward")


def final_scores(rows: pl.DataFrame, method: str) -> dict[int, float]:
    """Return the score of the final evaluation of each seed."""
    final = rows.filter((pl.col("eval_type") == "final") & (pl.col("method") == method))
    return dict(zip(final["seed"], final["mean_return"], strict=True))


def score(value: float, digits: int = 2) -> str:
    """Format a score; a negative zero has no sign."""
    return f"{round(value, digits) + 0.0:.{digits}f}".replace("-", "−")


def circumstances(rows: pl.DataFrame) -> str:
    """Say when and where the runs were made."""
    dates, models, versions = (
        " and ".join(sorted(set(rows[name]))) for name in ("date", "cpu_model", "torch")
    )
    return f"One thread of a shared {models}, torch {versions}, {dates}"


def draw_curves(
    rows: pl.DataFrame, path: Path, methods: Mapping[str, str], *, marked: Mapping[str, float]
) -> None:
    """Draw the score of every seed by frames, and a line with its name at each marked score.

    Each method has a color. Later ones have thinner lines, so that equal curves are all visible.
    """
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    for number, (method, label) in enumerate(methods.items()):
        own = rows.filter(pl.col("method") == method)
        width = 1.0 + 0.9 * (len(methods) - 1 - number)
        for seed in sorted(own["seed"].unique()):
            curve = own.filter(pl.col("seed") == seed)
            axes.plot(
                curve["env_frames"] / 1000, curve["mean_return"], color=f"C{number}", marker="o",
                linewidth=width, markersize=2 + width, label=label,
            )  # fmt: skip
            label = ""
    axes.margins(y=0.1)
    for name, height in marked.items():
        axes.axhline(height, color="0.5", linestyle=":")
        axes.text(1.01, height, name, transform=axes.get_yaxis_transform(), va="center", fontsize="small")
    axes.set_xlabel("emulator frames (thousands)")
    axes.set_ylabel("score of an evaluation")
    axes.legend(loc="best")
    figure.savefig(path, dpi=110, metadata={"Software": None})
