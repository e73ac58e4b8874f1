"""Keep runs of `dqn sweep track_a_10m`, and make their page: evaluations next to published ones, by frames.

The tables are those of `gather.py`, in `track_a/`; the published figures come with the package. Runs that
are not finished are kept as far as they have come; those without an evaluation are named and left out.

python docs/results/keep_track_a.py outputs/track_a_10m/trackA_pong_seed1       keep runs, make the page
python docs/results/keep_track_a.py                                             make the page again
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import polars as pl
from equal_frames import bracketed, evaluations_at
from gather import add, gather, origin, trained
from keep import WINDOW_EPISODES, read
from keep_pqn import RESULTS, Run, number, runs_of

from atari_dqn.compare.reference.caps import MARK
from atari_dqn.compare.reference.studies import Figure, curves

KEPT, PLOT, PAGE = Path("track_a"), Path("track_a/curves.png"), Path("track_a.md")
PUBLISHED = ("nnabla_dqn", "dqn")
UNITS = {"trackA": "paper's units", "trackA_lua": "Lua code's units"}
"""By the name of the method in the sweep."""
MILLIONS = (1, 2, 5, 10)
TOTAL_MILLIONS = max(MILLIONS)
TEXT = """\
# Does Track A learn what a published DQN learns in as many frames?

The DQN of Mnih et al. (2015) on {games}, with the units of the paper's table
([`pong_trackA`](../../runs/pong_trackA.toml)) and with those of DeepMind's Lua code
([`pong_trackA_lua`](../../runs/pong_trackA_lua.toml)): an evaluation of 30 games after each million frames,
next to the three seeds of nnabla-rl's DQN, their mean with the lowest and the highest in brackets. **Inside**
is a score that is no further outside these two than they are apart. A dash: the run has not come so far.{cut}

{table}

{progress}

![Evaluations and training games by frames, with the published seeds]({plot})

{runs}

- **The units differ.** By the paper's table ε falls to 0.1 over a million frames, and the target network is
  copied every 10,000 updates, which are 160,000 frames: 11 times in the first two million. The Lua code
  counts agent steps, and so does nnabla-rl: ε falls over four million frames, and the target network is
  copied every 10,000 steps, which are 2,500 updates or 40,000 frames: 45 times in the first two million. The
  value of a reward comes nearer to the action that led to it with each copy.
- **The code of nnabla-rl differs in two more things**, which may explain why its DQN learns Pong earlier than
  with either unit here: its weights begin with the variance 2 / fan-in (He et al. 2015), those of Track A
  with 1 / (3 fan-in), as in the Lua code; and its loss is the squared error without the factor ½, which
  doubles gradients. Neither was tried yet: `--set network.init=he_uniform` is the first.
- **The protocols are alike, but for the cap of a game.** Both play with ε = 0.05, up to 30 no-op frames and
  no sticky actions. Games of Track A end after 18,000 frames, as in its paper, those of nnabla-rl after
  400,000. There is a verdict only where no game reached 18,000.
- At 10M the published figure is the mean of the evaluations from 8M to 12M frames, ours of those from 8M on,
  which is lower while scores rise.
- **Minutes** are those of the whole run, with its evaluations. Two runs trained at once, next to other work.

**Not shown:** other games; Track A with the initial weights of nnabla-rl; whether the curves
agree later: the paper's runs have 50 million frames.

Made from [runs.csv](track_a/runs.csv), [games.csv](track_a/games.csv) and
[evaluations.csv](track_a/evaluations.csv) by

```
dqn sweep track_a_10m
python docs/results/keep_track_a.py RUN...
```
"""


CUT_NOTE = f" {MARK}: the cap cut games, so that there is no verdict."


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
        """The units and the seed, for display."""
        method = self.made["run"].partition(f"_{self.game}_seed")[0]
        return f"{UNITS[method]}, seed {self.made['seed']}"

    @property
    def trained_frames(self) -> int:
        """Emulator frames at the end of the last game."""
        frames: int = self.games["env_frames"].max()  # type: ignore[assignment]
        return frames


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", nargs="*", type=Path, help="run directories of `track_a_10m`")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    if options.runs:
        keep(options.runs, options.out / KEPT)
    runs = kept_runs(options.out)
    draw(runs, options.out / PLOT)
    (options.out / PAGE).write_text(page(runs), encoding="utf-8")
    print(page(runs))


def keep(runs: list[Path], folder: Path) -> None:
    """Add the runs that have an evaluation to the tables of a folder."""
    evaluated = [run for run in runs if len(read(run, "eval_log"))]
    for run in set(runs) - set(evaluated):
        print(f"{run}: not evaluated yet; left out")
    if not evaluated:
        raise SystemExit("no evaluated run")
    gather(folder, {run.name: run for run in evaluated})
    (folder / "predictions.csv").unlink()  # no page needs them
    add(folder / "runs.csv", [pl.DataFrame([{**origin(run.name, run), **trained(run)}]) for run in evaluated])


def kept_runs(results: Path) -> list[TrackARun]:
    """Return the kept runs by game and seed."""
    found = [TrackARun(**vars(run)) for run in runs_of(results / KEPT)]
    return sorted(found, key=lambda run: (run.game, run.label))


def page(runs: list[TrackARun]) -> str:
    """Make the page."""
    scores = table(runs)
    return TEXT.format(
        games=" and ".join(game.capitalize() for game in games_of(runs)),
        table=scores,
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
    return f"; resumed {made['resumes']} times{differs or ', exactly'}"


def draw(runs: list[TrackARun], path: Path) -> None:
    """Draw evaluations and the mean of the last training games, a panel for each game."""
    games, labels = games_of(runs), sorted({run.label for run in runs})
    figure, places = plt.subplots(
        1, len(games), figsize=(5.5 * len(games), 4), layout="constrained", squeeze=False
    )
    for place, game in zip(places[0], games, strict=True):
        own = [run for run in runs if run.game == game]
        for run in own:
            color = labels.index(run.label)  # of a label the same in every panel
            mean = run.games["episode_return"].rolling_mean(WINDOW_EPISODES)
            place.plot(run.games["env_frames"] * 1e-6, mean, color=f"C{color}", alpha=0.4)
            evaluated = run.evaluations["env_frames"] * 1e-6, run.evaluations["mean_return"]
            place.plot(*evaluated, "o", color=f"C{color}", markersize=4, label=f"here, {run.label}")
        found = [each for millions, each in sorted(published(game).items()) if millions <= TOTAL_MILLIONS]
        frames = [each.env_frames * 1e-6 for each in found]
        place.plot(
            frames, [each.mean for each in found], color="0.3", marker="s", label="nnabla-rl, mean of 3 seeds"
        )
        place.fill_between(
            frames, [each.lowest for each in found], [each.highest for each in found], color="0.3", alpha=0.2
        )
        place.set_title(game)
        place.set_xlabel("emulator frames (millions)")
        place.grid(alpha=0.3)
        place.legend(loc="upper left", fontsize="small")
    places[0][0].set_ylabel(f"return; lines: mean of the last {WINDOW_EPISODES} training games")
    figure.savefig(path, dpi=110, metadata={"Software": None})
    plt.close(figure)


if __name__ == "__main__":
    main()
