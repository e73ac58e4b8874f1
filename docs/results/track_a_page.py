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
    "trackA": "paper's settings",
    "trackA_lua": "Lua code's settings",
    "trackA_lua_he": "Lua code's, He's weights",
    "trackA_lua_he_doubled": "Lua code's, He's weights, doubled gradients",
    "trackA_lua_he_doubled_area": "Lua code's, He's weights, doubled gradients, resize by area",
}
"""By the first part of the run's name, which in a sweep is the method's."""
MILLIONS = (1, 2, 3, 5, 10)
TOTAL_MILLIONS = max(MILLIONS)
UPDATES_FRAMES = 200_000
"""Length of the intervals over which the update log is averaged."""
UPDATES_AT = (400_000, 600_000, 1_000_000, 1_600_000, 2_000_000)
"""Ends of the intervals that the page shows."""
LUA = (
    "dqn train pong_trackA_lua --set evaluation.full_period_frames=1M --set evaluation.light_period_frames=1M"
)
HE_DOUBLED = "--set network.init=he_uniform --set learner.loss=doubled"
COMMANDS = f"""\
{LUA} --set training.total_frames=2M --run-dir outputs/trackA_lua_pong_seed1
{LUA} --set training.total_frames=10M --set learner.threads=1 {HE_DOUBLED} \
--run-dir outputs/trackA_lua_he_doubled_pong_seed1
{LUA} --set training.total_frames=10M {HE_DOUBLED} --set env.resize=area \
--run-dir outputs/trackA_lua_he_doubled_area_pong_seed1"""
"""The commands of the runs that are in no sweep that comes with the program: none may need a package."""
CUT_NOTE = f" {MARK}: the cap cut games, so that there is no verdict."
TEXT = """\
# Does Track A learn what a published DQN learns in as many frames?

The DQN of Mnih et al. (2015) on {games}, with the settings of the paper's table
([`pong_trackA`](../../runs/pong_trackA.toml)) and with those of DeepMind's Lua code where it differs
([`pong_trackA_lua`](../../runs/pong_trackA_lua.toml)): an evaluation of 30 games after each million frames,
next to the three seeds of nnabla-rl's DQN, their mean with the lowest and the highest in brackets. **Inside**
is a score that is no further outside these two than they are apart. A dash: the run has not come so far, or
nothing is published.{cut}

**On Pong both are below after two million frames; with the settings of nnabla-rl's code the score is among
its seeds.** That code does several things otherwise than Track A and its sources; of these, larger initial
weights make the loss fall a million frames earlier.

{table}

{progress}

![Evaluations and training games by frames, with the published seeds]({plot})

## What was tried on Pong

These settings of nnabla-rl's code differ from Track A's. They were changed one after the other, **each in one
run with one seed**, so that a difference between two runs may be one of chance.

1. **Units, with the settings of the Lua code.** By the paper's table ε falls to 0.1 over a million frames,
   and the target network is copied every 10,000 updates, which are 160,000 frames: 11 times in the first two
   million. The Lua code counts agent steps, and so does nnabla-rl: ε falls over four million frames, and the
   target network is copied every 2,500 updates or 40,000 frames: 45 times. The spec also resizes frames as
   the Lua code does, bilinearly.
2. **Larger initial weights**, of variance 2 / fan-in (He et al. 2015), and biases of 0. Those of Track A are
   U(±1/√fan-in), as in the Lua code, a sixth of that variance; the paper names none. nnabla-rl's are normally
   distributed, those of `he_uniform` uniformly, and in the last layer with half that variance.
3. **Doubled gradients**: the squared error without the factor ½, whose gradient is clipped to ±1
   ([`doubled_loss`](track_a/doubled_loss/doubled_loss.py)).
4. **Frames resized by area**, as in nnabla-rl and in `pong_trackA`.

Means over the {interval} frames before, of the minibatches' loss, of the gradient's norm, and of the returns
of training games, whose ε is the same in all runs but the first:

{updates}

With doubled gradients the loss is another: an unpredicted reward of ±1 costs 0.75, not 0.5.

- **With all four, the score after 2M frames lies between the published seeds.** One run with one seed does
  not say how much of that each setting did. The training games before improve with the larger weights and
  again with doubled gradients, but not with the resizing, though the evaluation is two points higher with it:
  evaluations of a young policy vary much from one to the next.
- **The loss leaves its plateau a million frames earlier with the larger weights.** While a network predicts
  no reward at all, its loss stays near 0.011 (0.017 where gradients are doubled). That of the smaller
  weights leaves this value after more than a million frames, that of the larger ones within the first 0.4
  million that are learned from, whichever the loss and the resizing.
- **A small loss is no better score.** It is smallest with the paper's settings, whose policy lost each of 30
  games by 0 to 21.
- **Why is not known.** With the larger weights the outputs of a new network are larger by up to 6^2.5 = 88
  times, and so are the gradients in its first layers. The optimizer divides a gradient by √(its variance +
  0.01), which hardly depends on it as long as it is below 0.1, so that small gradients take small steps;
  but doubled gradients did not end the plateau earlier.
- **Not tried**, though it differs: nnabla-rl evaluates in 125,000 agent steps, of which the last, unfinished
  game does not count; its ε falls from the first step on, not from the end of the prefill; the first stack of
  a game repeats its first frame.

Track A keeps the weights and the loss of the Lua code. `--set network.init=he_uniform` begins with the larger
weights, and marks the run `A*`.

## How they were measured

{runs}

- **The protocols are alike, but for the cap of a game**, the number of games, and what is named above. Both
  play with ε = 0.05, up to 30 no-op frames and no sticky actions. Games of Track A end after 18,000 frames,
  as in its paper, those of nnabla-rl after 400,000. There is a verdict only where no game reached 18,000.
- The mean of 30 games has a standard error of at most 0.8; how much seeds differ, one seed does not say.
- At 10M the published figure is the mean of the evaluations from 8M to 12M frames, ours of those from 8M on,
  which is lower while scores rise.
- **Minutes** are those of the whole run, with its evaluations. Two runs trained at once, next to other work.
- The run with the Lua code's settings had a budget of two million frames, and ended.

**Not shown:** other games; a second seed of any run; larger weights on Breakout; whether the curves agree
later: the paper's runs have 50 million frames.

Made from [runs.csv](track_a/runs.csv), [games.csv](track_a/games.csv),
[evaluations.csv](track_a/evaluations.csv) and [updates.csv](track_a/updates.csv) by

```
dqn sweep track_a_10m
dqn sweep track_a_init
pip install docs/results/track_a/doubled_loss
{commands}
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
    def place(self) -> tuple[str, int, int]:
        """The place in the page's order: by game, variant and seed."""
        return self.game, [*VARIANTS].index(self._variant), self.made["seed"]

    @property
    def label(self) -> str:
        """The variant and the seed, for display."""
        return f"{VARIANTS[self._variant]}, seed {self.made['seed']}"

    @property
    def _variant(self) -> str:
        return str(self.made["run"]).partition(f"_{self.game}_seed")[0]

    @property
    def trained_frames(self) -> int:
        """Emulator frames at the end of the last game."""
        frames: int = self.games["env_frames"].max()  # type: ignore[assignment]
        return frames


def page(runs: list[TrackARun], updates: pl.DataFrame) -> str:
    """Make the page from the kept runs and the means of their update logs."""
    scores = table(runs)
    return TEXT.format(
        commands=COMMANDS,
        interval=f"{UPDATES_FRAMES:,}",
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
    """Format the mean loss and the mean norm of the gradient of each run on Pong."""
    columns = [f"{frames / 1e6:g}M" for frames in UPDATES_AT]
    lines = [f"| pong | | {' | '.join(columns)} |", "|---" * (len(columns) + 2) + "|"]
    for run in runs:
        if run.game != "pong":
            continue
        rows = updates.filter(pl.col("run") == run.made["run"]).rows_by_key("env_frames", unique=True)
        found = [rows.get(frames) for frames in UPDATES_AT]
        losses = " | ".join("–" if each is None else f"{each[1]:.4f}" for each in found)
        norms = " | ".join("–" if each is None else f"{each[2]:.1f}" for each in found)
        returns = " | ".join(number(training_return(run, frames)) for frames in UPDATES_AT)
        lines += [
            f"| {run.label} | loss | {losses} |",
            f"| | gradient norm | {norms} |",
            f"| | training return | {returns} |",
        ]
    return "\n".join(lines)


def training_return(run: TrackARun, frames: int) -> float:
    """Compute the mean return of the training games that ended in the interval before `frames`."""
    is_in_interval = pl.col("env_frames").is_between(frames - UPDATES_FRAMES, frames, closed="right")
    mean: float = run.games.filter(is_in_interval)["episode_return"].mean()  # type: ignore[assignment]
    return mean


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
    unfinished = sum(score_at(run.evaluations, TOTAL_MILLIONS) is None for run in runs)
    if not unfinished:
        return f"All {len(runs)} runs have trained for {TOTAL_MILLIONS} million frames."
    return (
        f"**Not finished**: {unfinished} of {len(runs)} runs have not come to {TOTAL_MILLIONS} million "
        f"frames; {done:.1f} million are trained in all."
    )


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
