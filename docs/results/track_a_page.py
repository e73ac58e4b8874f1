"""The page of Track A next to published seeds: what `keep_track_a.py` writes into `track_a.md`."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import polars as pl
from equal_frames import bracketed, evaluations_at, has_span, verdict_of, with_verdict
from keep_pqn import Run, number
from track_a_text import COMMANDS, TEXT

from atari_dqn.compare.reference.caps import MARK
from atari_dqn.compare.reference.match import figure_at
from atari_dqn.compare.reference.studies import Figure, curves

PLOT = "track_a/curves.png"
PUBLISHED = ("nnabla_dqn", "dqn")
VARIANTS = {
    "trackA": "paper's settings",
    "trackA_lua": "Lua code's settings",
    "trackA_lua_2m": "Lua code's settings",
    "trackA_lua_he": "Lua code's, He's weights",
    "trackA_lua_he_doubled": "Lua code's, He's weights, doubled gradients",
    "trackA_lua_he_doubled_area": "Lua code's, He's weights, doubled gradients, resize by area",
}
"""By the part of a run's name before its game. `trackA_lua_2m` has a budget of 2M frames."""
NEAREST = "trackA_lua_he_doubled_area"
"""The variant that is most like nnabla-rl's code."""
MILLIONS = range(1, 11)
TOTAL_MILLIONS = max(MILLIONS)
UPDATES_FRAMES = 200_000
"""Length of the intervals over which the update log is averaged."""
UPDATES_AT = (400_000, 600_000, 1_000_000, 1_600_000, 2_000_000)
"""Ends of the intervals that the page shows."""
CUT_NOTE = f"\n{MARK}: the cap cut games, so that there is no verdict."
OTHER_RESIZE_MARK = "‡"
"""The mark of a score on frames that are resized otherwise than the published ones."""
PUBLISHED_RESIZE = "area"


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
        return self.game, [*VARIANTS].index(self.variant), self.made["seed"]

    @property
    def label(self) -> str:
        """The variant and the seed, for display."""
        return f"{VARIANTS[self.variant]}, seed {self.made['seed']}"

    @property
    def variant(self) -> str:
        """The settings, a key of `VARIANTS`."""
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
        tally=tally(runs),
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
        figures = {each: figure_of(game, each) for each in MILLIONS}
        for run in runs:
            if run.game == game:
                cells = (cell_of(run, each, figures[each]) for each in MILLIONS)
                lines.append(f"| {game} | {run.label} | {' | '.join(cells)} |")
        cells = (bracketed(figures[each]) for each in MILLIONS)
        lines.append(f"| | nnabla-rl, DQN | {' | '.join(cells)} |")
    return "\n".join(lines)


def tally(runs: list[TrackARun]) -> str:
    """Count the verdicts on the runs that are most like nnabla-rl's, without those at 1M frames."""
    own = [run for run in runs if run.variant == NEAREST]
    verdicts = Counter(
        verdict_at(run, each, figure_of(run.game, each)) for run in own for each in MILLIONS[1:]
    )
    del verdicts[None]
    words = ("on track", "just below", "below", "just above", "above")
    found = ", ".join(f"{verdicts[word] or 'none'} {word}" for word in words)
    return f"{verdicts.total()} verdicts from {MILLIONS[1]}M to {TOTAL_MILLIONS}M frames: {found}"


def table_of_updates(runs: list[TrackARun], updates: pl.DataFrame) -> str:
    """Format loss, gradient norm and training return of each run on Pong, averaged over intervals."""
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


def figure_of(game: str, millions: int) -> Figure | None:
    """Return the published figure at so many frames, which `dqn compare` has there; None if there is none."""
    found = figure_at(curves(game)[PUBLISHED], 1_000_000 * millions)
    return found and found[0]


def score_at(evaluations: pl.DataFrame, millions: int) -> Score | None:
    """Return our score as the published one is made; None if the run has not come so far."""
    averaged = evaluations_at(evaluations, millions)
    if averaged.is_empty():
        return None
    mean: float = averaged["mean_return"].mean()  # type: ignore[assignment]
    return Score(mean=mean, is_cut=bool((averaged["frame_caps"] > 0).any()))


def cell_of(run: TrackARun, millions: int, figure: Figure | None) -> str:
    """Format a run's score at so many frames, with its verdict or the reason why there is none."""
    score = score_at(run.evaluations, millions)
    if score is None:
        return "–"
    if score.is_cut:
        return number(score.mean) + MARK
    if run.made["resize"] != PUBLISHED_RESIZE:
        return number(score.mean) + OTHER_RESIZE_MARK
    verdict = verdict_at(run, millions, figure)
    if verdict is None:
        return number(score.mean)
    return with_verdict(score.mean, verdict)


def verdict_at(run: TrackARun, millions: int, figure: Figure | None) -> str | None:
    """Return the verdict on a run's score at so many frames; None without one.

    There is one if no game was cut, frames are resized as the published ones, and the score is a mean over
    the same frames.
    """
    score = score_at(run.evaluations, millions)
    if score is None or figure is None or score.is_cut or run.made["resize"] != PUBLISHED_RESIZE:
        return None
    return verdict_of(score.mean, figure) if has_span(run.evaluations, millions) else None


def progress(runs: list[TrackARun]) -> str:
    """Say how far the runs have come."""
    done = sum(run.trained_frames for run in runs) / 1e6
    arrived = sum(score_at(run.evaluations, TOTAL_MILLIONS) is not None for run in runs)
    return (
        f"{arrived} of {len(runs)} runs have come to {TOTAL_MILLIONS} million frames; {done:.1f} million are "
        "trained in all."
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
