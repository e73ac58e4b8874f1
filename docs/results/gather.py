"""Gather the evidence of several runs in four tables and a picture.

`runs.csv` says how each run was made; `games.csv` has its training games, `evaluations.csv` its evaluations,
`predictions.csv` its reports on the predicted values. A run that is gathered again replaces its rows. The
picture has the mean of the last 20 training games; `curves.csv` has that mean at equal frames.

python docs/results/gather.py docs/results/pong_1m outputs/pong_1m_dqn_seed1 outputs/pong_1m_iqn_seed1
"""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import polars as pl
from keep import WINDOW_EPISODES, frames_in_millions, minutes_of, read, shortened

STEP_FRAMES = 100_000
GAMES = ("env_frames", "minutes", "episode_return", "episode_length_frames", "end_reason")


def main() -> None:
    folder, *runs = (Path(word) for word in sys.argv[1:])
    gather(folder, by_name(runs))
    draw(folder)


def gather(folder: Path, runs: dict[str, Path]) -> None:
    """Add the runs' rows to the tables of a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    add(folder / "runs.csv", [pl.DataFrame([origin(name, run)]) for name, run in runs.items()])
    add(folder / "games.csv", [games(run).select(named(name), *GAMES) for name, run in runs.items()])
    for table, source in {"evaluations": "eval_log", "predictions": "prediction_log"}.items():
        found = {name: read(run, source) for name, run in runs.items() if (run / f"{source}.csv").exists()}
        add(folder / f"{table}.csv", [rows.select(named(name), pl.all()) for name, rows in found.items()])


def by_name(runs: Iterable[Path], name_of: Callable[[Path], str] = lambda run: run.name) -> dict[str, Path]:
    """Return the runs by their names; exit if two have the same, of which a table could have one alone."""
    named_runs: dict[str, Path] = {}
    for run in runs:
        if (name := name_of(run)) in named_runs:
            raise SystemExit(f"{named_runs[name]} and {run} are both named {name}; rename a folder")
        named_runs[name] = run
    return named_runs


def origin(name: str, run: Path) -> dict[str, Any]:
    """Read how a run was made, and how often it was resumed, may differ since, and lost cores to others."""
    record = json.loads((run / "provenance.json").read_text())
    kinds = [json.loads(line)["kind"] for line in (run / "events.jsonl").read_text().splitlines()]
    return {
        "run": name,
        "started": record["started"][:16],
        "commit": record["git"]["commit"][:10],
        "command": " ".join(shortened(record["command_line"])[1:]),
        "spec_digest": record["spec"]["digest"][:12],
        "cpu_model": record["hardware"]["cpu_model"],
        "cpu_flags": " ".join(record["hardware"]["cpu_flags"] or ()),
        "torch_threads": record["torch_threads"],
        "torch": record["versions"]["torch"],
        "ale_py": record["versions"]["ale-py"],
        "resumes": kinds.count("resumed"),
        "inexact_notices": kinds.count("inexact"),
        "busy_notices": kinds.count("busy machine"),
    }


def games(run: Path) -> pl.DataFrame:
    """Return the training games with the minute in which each ended, rounded to a hundredth."""
    episodes = read(run, "train_log")
    return episodes.with_columns(minutes_of(episodes, read(run, "throughput_log")).round(2).alias("minutes"))


def final_of(evaluations: pl.DataFrame) -> pl.DataFrame:
    """Return the final evaluation of each run; later ones of a run that was continued do not count."""
    final = evaluations.filter(pl.col("eval_type") == "final")
    return final.unique("run", keep="first", maintain_order=True)


def finished_of(runs: list[Path]) -> list[Path]:
    """Return the finished runs, and print the others; exit if there is none."""
    finished = [run for run in runs if (run / "summary.json").exists()]
    for run in set(runs) - set(finished):
        print(f"{run}: not finished; left out")
    if not finished:
        raise SystemExit("no finished run")
    return finished


def trained(run: Path) -> dict[str, Any]:
    """Read what a run played, and for how long it trained."""
    spec = tomllib.loads((run / "spec.toml").read_text())
    seconds = read(run, "throughput_log")["elapsed_seconds"].max()
    return {"game": spec["game"], "seed": spec["seed"], "minutes": round(seconds / 60, 1)}


def gather_evaluations(
    folder: Path, runs: dict[str, Path], facts: Callable[[Path], dict[str, Any]] = trained
) -> None:
    """Add the runs' rows to two tables of a folder, `runs.csv`, with `facts`, and `evaluations.csv`."""
    folder.mkdir(parents=True, exist_ok=True)
    add(folder / "runs.csv", [pl.DataFrame([origin(name, run) | facts(run)]) for name, run in runs.items()])
    evaluations = [read(run, "eval_log").select(named(name), pl.all()) for name, run in runs.items()]
    add(folder / "evaluations.csv", evaluations)


def every(runs: pl.DataFrame, column: str, length: int | None = None) -> str:
    """List the different values of a column of `runs.csv`, each cut to a length."""
    return ", ".join(sorted({str(value)[:length] for value in runs[column]}))


def processors(runs: pl.DataFrame) -> str:
    """List the processors of runs with their widest vectors, and of several kinds the number of runs."""
    widest = pl.col("cpu_flags").str.split(" ").list.last()
    kinds = runs.group_by("cpu_model", widest).len().sort("cpu_model", "cpu_flags")
    counts = [f", {count} runs" if len(kinds) > 1 else "" for count in kinds["len"]]
    names = zip(kinds["cpu_model"], kinds["cpu_flags"], counts, strict=True)
    return " and ".join(f"{model} ({flag}{count})" for model, flag, count in names)


def named(name: str) -> pl.Expr:
    return pl.lit(name).alias("run")


def add(path: Path, tables: Iterable[pl.DataFrame]) -> None:
    """Write a table with new rows in place of those of the same runs."""
    new = pl.concat(tables, how="diagonal_relaxed")
    if path.exists():
        old = pl.read_csv(path, infer_schema_length=None)
        new = pl.concat([old.filter(~pl.col("run").is_in(new["run"].unique())), new], how="diagonal_relaxed")
    new.sort("run", maintain_order=True).write_csv(path)


def draw(folder: Path) -> None:
    """Draw the learning curves of a folder's runs, and write them at equal frames."""
    every = pl.read_csv(folder / "games.csv", infer_schema_length=None)
    runs = {name: rows for (name,), rows in every.group_by("run", maintain_order=True)}
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    for name, rows in runs.items():
        mean = rows["episode_return"].rolling_mean(WINDOW_EPISODES)
        axes.plot(
            frames_in_millions(rows), mean, label=f"{name}, at the end {mean[-1]:.1f}".replace("-", "−")
        )
    axes.set_xlabel("emulator frames (millions)")
    axes.set_ylabel(f"return of a game, mean of the last {WINDOW_EPISODES}")
    axes.grid(alpha=0.3)
    axes.legend(loc="upper left", fontsize="small")
    figure.savefig(folder / "curves.png", dpi=110, metadata={"Software": None})
    frames = range(STEP_FRAMES, int(every["env_frames"].max()) + STEP_FRAMES, STEP_FRAMES)
    means = {name: [mean_at(rows, end) for end in frames] for name, rows in runs.items()}
    pl.DataFrame({"env_frames": list(frames), **means}).write_csv(folder / "curves.csv", float_precision=1)


def mean_at(rows: pl.DataFrame, frames: int) -> float | None:
    """Return the mean of the last games up to so many frames; None where the run did not come so far."""
    if rows["env_frames"].max() < frames - 20_000:  # the last game ends a little before the budget
        return None
    return rows.filter(pl.col("env_frames") <= frames)["episode_return"].tail(WINDOW_EPISODES).mean()


if __name__ == "__main__":
    main()
