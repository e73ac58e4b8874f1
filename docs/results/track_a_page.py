"""The page of Track A next to published seeds: what `keep_track_a.py` writes into `track_a.md`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl
from equal_frames import bracketed, evaluations_at
from keep_pqn import Run, number

from atari_dqn.compare.reference.caps import MARK
from atari_dqn.compare.reference.studies import Figure, curves

PLOT = "track_a/curves.png"
PUBLISHED = ("nnabla_dqn", "dqn")
VARIANTS = {
    "trackA": "paper's units",
    "trackA_lua": "Lua code's units",
    "trackA_lua_he": "Lua code's units, He's initial weights",
    "trackA_lua_he_doubled": "Lua code's units, He's initial weights, doubled gradients",
}
"""By the first part of the run's name, which in a sweep is the method's."""
MILLIONS = (1, 2, 5, 10)
TOTAL_MILLIONS = max(MILLIONS)
UPDATES_FRAMES = 200_000
"""Length of the intervals over which the update log is averaged."""
UPDATES_AT = (400_000, 1_000_000, 1_600_000, 2_000_000)
"""Ends of the intervals that the page shows."""
NUM_WEIGHTS = 1_687_206
"""Weights and biases of the network of Mnih et al. (2015) with Pong's six actions."""
DOUBLED = (
    "dqn train pong_trackA_lua --run-dir outputs/trackA_lua_he_doubled_pong_seed1 --set learner.threads=1"
    " --set network.init=he_uniform --set learner.loss=doubled --set training.total_frames=10M"
    " --set evaluation.full_period_frames=1M --set evaluation.light_period_frames=1M"
)
"""The command of the run with doubled gradients, whose loss no shipped sweep may need."""
CUT_NOTE = f" {MARK}: the cap cut games, so that there is no verdict."
TEXT = """\
# Does Track A learn what a published DQN learns in as many frames?

The DQN of Mnih et al. (2015) on {games}, with the units of the paper's table
([`pong_trackA`](../../runs/pong_trackA.toml)) and with those of DeepMind's Lua code
([`pong_trackA_lua`](../../runs/pong_trackA_lua.toml)): an evaluation of 30 games after each million frames,
next to the three seeds of nnabla-rl's DQN, their mean with the lowest and the highest in brackets. **Inside**
is a score that is no further outside these two than they are apart. A dash: the run has not come so far.{cut}

**On Pong it learns later, since its weights begin smaller.** With nnabla-rl's initial weights and nothing
else changed, it predicts rewards a million frames earlier, and its score after 2M frames is inside, though
below each of the three seeds.

{table}

{progress}

![Evaluations and training games by frames, with the published seeds]({plot})

## Why it learns Pong later

Three things differ between nnabla-rl's DQN and Track A. They were changed one after the other:

1. **The units.** By the paper's table ε falls to 0.1 over a million frames, and the target network is copied
   every 10,000 updates, which are 160,000 frames: 11 times in the first two million. The Lua code counts
   agent steps, and so does nnabla-rl: ε falls over four million frames, and the target network is copied
   every 10,000 steps, which are 2,500 updates or 40,000 frames: 45 times in the first two million. With these
   units alone the score after 2M frames stays below.
2. **The initial weights**, of variance 2 / fan-in (He et al. 2015) in nnabla-rl and 1 / (3 fan-in) in Track
   A, as in the Lua code, whose layers are Torch 7's. The paper does not name any. With He's the score is
   inside.
3. **The loss**, the squared error without the factor ½ in nnabla-rl, so that gradients within the clipping
   range are twice those of Track A. This loss as well
   ([`doubled_loss`](track_a/doubled_loss/doubled_loss.py)) hardly changes the score.

Mean loss of the minibatches in the {interval} frames before (without ½ where gradients are doubled), and root
mean square of the gradient over the {weights} weights:

{updates}

While a network predicts no reward at all, its loss on Pong stays near 0.011, since a reward is ±1 and rare.
Track A's leaves this value after more than a million frames, with He's weights within the first 0.2 million
that it learns from. The reason is the optimizer: it divides a gradient by √(its variance + 0.01), which is at
least 0.1, and gradients are far below that. So a step is 0.0025 times the gradient, as in plain gradient
descent: small weights have small gradients, and small gradients take small steps.

Track A keeps the weights of the Lua code. `--set network.init=he_uniform` begins with the others, and marks
the run `A*`.

## How they were measured

{runs}

- **The protocols are alike, but for the cap of a game.** Both play with ε = 0.05, up to 30 no-op frames and
  no sticky actions. Games of Track A end after 18,000 frames, as in its paper, those of nnabla-rl after
  400,000. There is a verdict only where no game reached 18,000.
- At 10M the published figure is the mean of the evaluations from 8M to 12M frames, ours of those from 8M on,
  which is lower while scores rise.
- **Minutes** are those of the whole run, with its evaluations. Two runs trained at once, next to other work.

**Not shown:** other games; a second seed of any of these; He's weights on Breakout; whether the curves agree
later: the paper's runs have 50 million frames.

Made from [runs.csv](track_a/runs.csv), [games.csv](track_a/games.csv),
[evaluations.csv](track_a/evaluations.csv) and [updates.csv](track_a/updates.csv) by

```
dqn sweep track_a_10m
dqn sweep track_a_init
pip install docs/results/track_a/doubled_loss
{doubled}
python docs/results/keep_track_a.py RUN...
```
"""


@dataclass(frozen=True, kw_only=True)
class Score:
    """The mean return of one or several evaluations."""

    mean: float
    is_cut: bool
    """Whether the frame cap cut one of their games."""


@dataclass(frozen=True, kw_only=True)
class TrackARun(Run):
    """A kept run, with its game and seed from `runs.csv`."""

    @property
    def game(self) -> str:
        """The name of the game."""
        return str(self.made["game"])

    @property
    def label(self) -> str:
        """The variant and the seed, for display."""
        method = self.made["run"].partition(f"_{self.game}_seed")[0]
        return f"{VARIANTS[method]}, seed {self.made['seed']}"

    @property
    def trained_frames(self) -> int:
        """Emulator frames at the end of the last game."""
        frames: int = self.games["env_frames"].max()  # type: ignore[assignment]
        return frames


def page(runs: list[TrackARun], updates: pl.DataFrame) -> str:
    """Make the page from the kept runs and the means of their update logs."""
    scores = table(runs)
    return TEXT.format(
        doubled=DOUBLED,
        interval=f"{UPDATES_FRAMES:,}",
        weights=f"{NUM_WEIGHTS:,}",
        games=" and ".join(game.capitalize() for game in games_of(runs)),
        table=scores,
        updates=table_of_updates(runs, updates),
        cut=CUT_NOTE if MARK in scores else "",
        progress=progress(runs),
        plot=PLOT,
        runs="\n".join(map(description, runs)),
    )


def games_of(runs: list[TrackARun]) -> list[str]:
    return list(dict.fromkeys(run.game for run in runs))


def table(runs: list[TrackARun]) -> str:
    """Format the scores at equal frames: of each game ours, then the published ones."""
    lines = [
        f"| game | | {' | '.join(f'{each}M' for each in MILLIONS)} |",
        "|---" * (len(MILLIONS) + 2) + "|",
    ]
    for game in games_of(runs):
        figures = published(game)
        for run in runs:
            if run.game == game:
                cells = (verdict_of(score_at(run.evaluations, each), figures.get(each)) for each in MILLIONS)
                lines.append(f"| {game} | {run.label} | {' | '.join(cells)} |")
        cells = (bracketed(figures.get(each)) for each in MILLIONS)
        lines.append(f"| | nnabla-rl, DQN | {' | '.join(cells)} |")
    return "\n".join(lines)


def table_of_updates(runs: list[TrackARun], updates: pl.DataFrame) -> str:
    """Format the loss, and the gradient's root mean square over the weights, of each run on Pong."""
    columns = [f"{frames / 1e6:g}M" for frames in UPDATES_AT]
    lines = [f"| pong | | {' | '.join(columns)} |", "|---" * (len(columns) + 2) + "|"]
    for run in runs:
        if run.game != "pong":
            continue
        rows = updates.filter(pl.col("run") == run.made["run"]).rows_by_key("env_frames", unique=True)
        found = [rows.get(frames) for frames in UPDATES_AT]
        losses = " | ".join("–" if each is None else f"{each[1]:.4f}" for each in found)
        gradients = " | ".join("–" if each is None else f"{each[2] / NUM_WEIGHTS**0.5:.4f}" for each in found)
        lines += [f"| {run.label} | loss | {losses} |", f"| | gradient | {gradients} |"]
    return "\n".join(lines)


def published(game: str) -> dict[int, Figure]:
    """Return the published figures of a game by millions of frames."""
    return {figure.env_frames // 1_000_000: figure for figure in curves(game)[PUBLISHED]}


def score_at(evaluations: pl.DataFrame, millions: int) -> Score | None:
    """Return our score as the published one is made; None if the run has not come so far."""
    averaged = evaluations_at(evaluations, millions)
    if averaged.is_empty():
        return None
    mean: float = averaged["mean_return"].mean()  # type: ignore[assignment]
    return Score(mean=mean, is_cut=bool((averaged["frame_caps"] > 0).any()))


def verdict_of(score: Score | None, figure: Figure | None) -> str:
    """Format a score, and say whether it is inside the range of published seeds, widened by its width.

    Nothing is said of a score whose games were cut: the published ones had longer games.
    """
    if score is None:
        return "–"
    if score.is_cut:
        return number(score.mean) + MARK
    if figure is None or figure.lowest is None or figure.highest is None:
        return number(score.mean)
    width = figure.highest - figure.lowest
    if score.mean < figure.lowest - width:
        return f"{number(score.mean)}, **below**"
    return f"{number(score.mean)}, {'above' if score.mean > figure.highest + width else 'inside'}"


def progress(runs: list[TrackARun]) -> str:
    """Say how far the runs have come."""
    done = sum(run.trained_frames for run in runs) / 1e6
    due = TOTAL_MILLIONS * len(runs)
    unfinished = [
        f"{run.game} {run.label}" for run in runs if score_at(run.evaluations, TOTAL_MILLIONS) is None
    ]
    if not unfinished:
        return f"All {len(runs)} runs have trained for {TOTAL_MILLIONS} million frames."
    return f"**Not finished**: {', '.join(unfinished)}; {done:.1f} of {due} million frames are trained."


def description(run: TrackARun) -> str:
    """Say how a run was made."""
    made = run.made
    return (
        f"- {run.game}, {run.label}: {run.trained_frames:,} frames in {made['minutes']:.0f} minutes; "
        f"{made['cpu_model']} ({made['cpu_flags'].split()[-1]}), threads: {made['torch_threads']}, "
        f"torch {made['torch']}; begun at commit {made['commit']}, {made['started'][:10]}{resumes(made)}"
    )


def resumes(made: dict[str, Any]) -> str:
    """Say how often a run was resumed, and how often it gave notice that a resume may not be exact."""
    if not made["resumes"]:
        return ""
    differs = f"; {made['inexact_notices']} notices that it may differ" if made["inexact_notices"] else ""
    times = "once" if made["resumes"] == 1 else f"{made['resumes']} times"
    return f"; resumed {times}{differs or ', exactly'}"
