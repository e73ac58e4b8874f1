"""Put kept runs side by side: a picture of their learning curves, and a table of means at equal frames.

Of each run the mean of its last 20 training games by emulator frames. Runs are folders that keep.py made.

python docs/results/curves.py docs/results/pong_1m
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import polars as pl
from keep import WINDOW_EPISODES, frames_in_millions, read

STEP_FRAMES = 100_000
MANY = 8
"""Curves that a legend beside them still leaves room for."""


def main() -> None:
    folder = Path(sys.argv[1])
    runs = {
        path.parent.name: read(path.parent, "train_log") for path in sorted(folder.glob("*/train_log.csv"))
    }
    draw(runs, folder / "curves.png")
    last = max(int(games["env_frames"].max()) for games in runs.values())
    frames = range(STEP_FRAMES, last + STEP_FRAMES, STEP_FRAMES)
    means = {name: [mean_at(games, end) for end in frames] for name, games in runs.items()}
    pl.DataFrame({"env_frames": list(frames), **means}).write_csv(folder / "curves.csv", float_precision=1)


def draw(runs: dict[str, pl.DataFrame], picture: Path) -> None:
    """Draw every run's mean of its last games."""
    many = len(runs) > MANY
    figure, axes = plt.subplots(figsize=(11, 5) if many else (7, 4), layout="constrained")
    axes.set_prop_cycle(color=plt.get_cmap("tab20" if many else "tab10").colors)
    for name, games in runs.items():
        mean = games["episode_return"].rolling_mean(WINDOW_EPISODES)
        axes.plot(frames_in_millions(games), mean, label=f"{name}: {mean[-1]:.1f}")
    axes.set_xlabel("emulator frames (millions)")
    axes.set_ylabel(f"return of a game, mean of the last {WINDOW_EPISODES}")
    axes.grid(alpha=0.3)
    if many:
        figure.legend(loc="outside right upper")
    else:
        axes.legend(loc="upper left")
    figure.savefig(picture, dpi=110)


def mean_at(games: pl.DataFrame, frames: int) -> float | None:
    """Return the mean of the last games up to so many frames; None where the run had not come so far."""
    if games["env_frames"].max() < frames - 20_000:  # the last game is over a little before the budget
        return None
    return games.filter(pl.col("env_frames") <= frames)["episode_return"].tail(WINDOW_EPISODES).mean()


main()
