"""Keep a run's evidence: its spec, provenance, tables, summary and a plot, none of its weights or replay.

Of paths in its command line only the last part is kept: where a machine holds its files is no evidence.
`gather.py` keeps several runs in a few tables.

python docs/results/keep.py outputs/pong_quick_seed1 docs/results/pong_quick
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import polars as pl
from matplotlib.axes import Axes

KEPT = (
    "spec.toml", "provenance.json", "summary.json", "events.jsonl",
    "train_log.csv", "update_log.csv", "replay_log.csv", "prediction_log.csv", "eval_log.csv",
    "throughput_log.csv",
)  # fmt: skip
WINDOW_EPISODES = 20


def keep(run: Path, folder: Path) -> None:
    """Copy what is small."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in KEPT:
        if (run / name).exists():  # a run that was interrupted has no summary
            shutil.copy(run / name, folder / name)
    shorten_paths(folder / "provenance.json")


def draw_curve(run: Path, folder: Path) -> None:
    """Draw the learning curve by frames and by minutes."""
    figure, axes = plt.subplots(1, 2, figsize=(11, 4), sharey=True, layout="constrained")
    episodes, evaluations, minutes = (
        read(run, table) for table in ("train_log", "eval_log", "throughput_log")
    )
    draw(axes[0], episodes, evaluations, frames_in_millions, "emulator frames (millions)")
    draw(axes[1], episodes, evaluations, lambda table: minutes_of(table, minutes), "minutes since the start")
    axes[0].set_ylabel("return of a game")
    axes[0].legend(loc="lower right")
    figure.suptitle(folder.name)
    figure.savefig(folder / "learning_curve.png", dpi=110)


def shorten_paths(provenance: Path) -> None:
    """Cut absolute paths in the recorded command line down to their names."""
    record = json.loads(provenance.read_text())
    record["command_line"] = shortened(record["command_line"])
    provenance.write_text(json.dumps(record, indent=2) + "\n")


def shortened(words: list[str]) -> list[str]:
    return [Path(word).name if Path(word).is_absolute() else word for word in words]


def read(run: Path, table: str) -> pl.DataFrame:
    return pl.read_csv(run / f"{table}.csv")


def draw(
    axes: Axes,
    episodes: pl.DataFrame,
    evaluations: pl.DataFrame,
    x_of: Callable[[pl.DataFrame], pl.Series],
    label: str,
) -> None:
    returns = episodes["episode_return"]
    axes.plot(x_of(episodes), returns, ".", markersize=2, color="0.7", label="training game")
    axes.plot(
        x_of(episodes), returns.rolling_mean(WINDOW_EPISODES), label=f"mean of the last {WINDOW_EPISODES}"
    )
    axes.errorbar(
        x_of(evaluations), evaluations["mean_return"], evaluations["std_return"],
        fmt="o", capsize=3, color="tab:red", label="evaluation ± std over games",
    )  # fmt: skip
    axes.set_xlabel(label)
    axes.grid(alpha=0.3)


def frames_in_millions(table: pl.DataFrame) -> pl.Series:
    return table["env_frames"] / 1e6


def minutes_of(table: pl.DataFrame, clock: pl.DataFrame) -> pl.Series:
    """Return the minute of each row, interpolated between the rows of the throughput log."""
    frames, seconds = ([0.0, *clock[name]] for name in ("env_frames", "elapsed_seconds"))
    return pl.Series("minutes", np.interp(table["env_frames"], frames, seconds) / 60)


def main() -> None:
    run, folder = map(Path, sys.argv[1:])
    keep(run, folder)
    draw_curve(run, folder)


if __name__ == "__main__":
    main()
