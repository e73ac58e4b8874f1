"""Keep runs with Dopamine's settings, and make their page: training returns next to those of published seeds.

The tables are `runs.csv` and `evaluations.csv` of `gather.py`, and `iterations.csv`: for each million frames
the number of training games that ended in it and their mean return. Runs that are not finished are kept as
far as they have come. A run that is kept again replaces its rows:

python docs/results/keep_dopamine.py outputs/dopamine_10m/*_seed1     keep runs, make the page
python docs/results/keep_dopamine.py                                  make the page again
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import polars as pl
from equal_frames import bracketed, verdict_of, with_verdict
from gather import add, by_name, gather_evaluations, named
from keep import read
from keep_pqn import RESULTS

from atari_dqn.compare.reference.studies import Averaging, Figure, curves, studies

KEPT, PLOT, PAGE = Path("dopamine"), Path("dopamine/curves.png"), Path("dopamine.md")
STUDY = "dopamine_jax"
METHODS = {"dopamine_dqn": ("DQN", "dqn"), "dopamine_rainbow": ("Rainbow", "rainbow")}
"""By the name of a spec: the name on the page, and the agent of the published figures."""
MILLIONS = range(1, 11)
VERDICTS = ("on track", "just below", "below", "just above", "above")
TEXT = """\
# Do DQN and Rainbow with Dopamine's settings learn what Dopamine's do in as many frames?

[`dopamine_dqn`](../../runs/dopamine_dqn.toml) and [`dopamine_rainbow`](../../runs/dopamine_rainbow.toml) have
the settings of [Dopamine](https://github.com/google/dopamine)'s JAX agents (Castro et al. 2018), whose curves
are published for five seeds: their mean, with the lowest and the highest in brackets. A score is the mean
return of the training games that ended within the last million frames; at 10M the mean of the iterations of
a million frames that end from 8M to 12M. On track is a score between the lowest and the highest seed;
**just** below or above, one that is no further outside than they are apart. Of six seeds that do not differ
otherwise, a given one is the lowest in one case of six, and the highest as often. A dash: the run has not
come so far.

{table}

{tally}

![Training returns by frames, with the published seeds]({plot})

{runs}

- **Random play and ε are in the score of the first million frames**, here and in Dopamine: ε is 1 for 80,000
  frames, and falls to 0.01 over the million after. At 1M a verdict says little.
- **A verdict here is one on training games**, with sticky actions, ε 0.01 from 1.08M frames on, whole games
  and 108,000 frames at most, in both programs. `dqn compare` gives none at 1M and 2M frames: in general it
  cannot know that ε fell alike.
- **The settings differ in what [deviations](../deviations.md) names**: initial weights of Rainbow (L7).
  Dopamine also plays the last game of an iteration to its end, so that its iterations are a little longer.
- Runs that are stopped are resumed, and are kept here as far as they have come.
- Two runs trained at once, next to other work, so the minutes are no speeds.

**Not shown:** how far seeds differ here; games and frames without a row.

Made from [runs.csv](dopamine/runs.csv), [iterations.csv](dopamine/iterations.csv) and
[evaluations.csv](dopamine/evaluations.csv) by

```
{commands}
python docs/results/keep_dopamine.py RUN...
```
"""


@dataclass(frozen=True, kw_only=True)
class DopamineRun:
    """A kept run: how it was made, and its training games by iterations of a million frames."""

    made: dict[str, Any]
    iterations: pl.DataFrame

    @property
    def game(self) -> str:
        """The name of the game."""
        return str(self.made["game"])

    @property
    def method(self) -> str:
        """The name of the spec."""
        return str(self.made["run"]).partition(f"_{self.game}_seed")[0]

    @property
    def label(self) -> str:
        """The agent and the seed, for display."""
        return f"{METHODS[self.method][0]}, seed {self.made['seed']}"

    @property
    def place(self) -> tuple[str, int, int]:
        """The place in the page's order: by game, agent and seed."""
        return self.game, [*METHODS].index(self.method), self.made["seed"]

    def figures(self) -> dict[int, Figure]:
        """Return the published figures of the agent on the game by emulator frames."""
        return {figure.env_frames: figure for figure in curves(self.game)[STUDY, METHODS[self.method][1]]}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", nargs="*", type=Path, help="run directories")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    if options.runs:
        keep(options.runs, options.out / KEPT)
    runs = kept_runs(options.out)
    draw(runs, options.out / PLOT)
    (options.out / PAGE).write_text(page(runs), encoding="utf-8")
    print(page(runs))


def keep(runs: list[Path], folder: Path) -> None:
    """Add the runs that have completed an iteration to the tables of a folder."""
    tables = {run: iterations(run) for run in runs}
    begun = by_name(run for run in runs if len(tables[run]))
    for run in set(runs) - set(begun.values()):
        print(f"{run}: no million frames yet; left out")
    if not begun:
        raise SystemExit("no run has completed a million frames")
    gather_evaluations(folder, begun)
    rows = [tables[run].select(named(name), pl.all()) for name, run in begun.items()]
    add(folder / "iterations.csv", rows)


def iterations(run: Path) -> pl.DataFrame:
    """Return the training games of a run in each million frames that it has completed, by their ends."""
    length = averaging().iteration_frames
    reached: int = read(run, "throughput_log")["env_frames"].max()  # type: ignore[assignment]
    end = (pl.col("env_frames") / length).ceil().cast(pl.Int64) * length
    means = read(run, "train_log").group_by(end.alias("env_frames"), maintain_order=True)
    table = means.agg(games=pl.len(), mean_return=pl.col("episode_return").mean().round(3))
    return table.filter(pl.col("env_frames") <= reached)


def averaging() -> Averaging:
    """Return how the published figures are averaged over frames."""
    averaging = studies()[STUDY].averaging
    assert averaging is not None
    return averaging


def kept_runs(results: Path) -> list[DopamineRun]:
    """Return the kept runs in the page's order."""
    folder = results / KEPT
    made, iterations = (pl.read_csv(folder / f"{table}.csv") for table in ("runs", "iterations"))
    runs = [
        DopamineRun(made=row, iterations=iterations.filter(pl.col("run") == row["run"]))
        for row in made.iter_rows(named=True)
    ]
    return sorted(runs, key=lambda run: run.place)


def page(runs: list[DopamineRun]) -> str:
    """Make the page."""
    return TEXT.format(
        table=table(runs),
        tally=tally(runs),
        plot=PLOT,
        runs="\n".join(map(description, runs)),
        commands="\n".join(map(command_of, runs)),
    )


def table(runs: list[DopamineRun]) -> str:
    """Format the scores at equal frames: of each agent on a game ours, then the published ones."""
    heads = ["game", "", *(f"{each}M" for each in MILLIONS)]
    rows = [heads, ["---"] * len(heads)]
    for game, method in dict.fromkeys((run.game, run.method) for run in runs):
        own = [run for run in runs if (run.game, run.method) == (game, method)]
        figures = own[0].figures()
        rows += [[game, run.label, *(score_text(run, each) for each in MILLIONS)] for run in own]
        published = (bracketed(figures.get(1_000_000 * each)) for each in MILLIONS)
        rows.append(["", f"{METHODS[method][0]}, Dopamine (JAX)", *published])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def score_text(run: DopamineRun, millions: int) -> str:
    """Format a run's score at so many frames with its verdict."""
    frames = 1_000_000 * millions
    score = score_at(run.iterations, frames)
    return "–" if score is None else with_verdict(score, verdict_of(score, run.figures()[frames]))


def score_at(iterations: pl.DataFrame, frames: int) -> float | None:
    """Return our score as the published one is made; None if the run has not come so far."""
    window = averaging().window(frames)
    assert window is not None
    begin, end = window
    averaged = iterations.filter(pl.col("env_frames").is_between(begin, end, closed="right"))
    if averaged.is_empty() or averaged["env_frames"].max() != end:
        return None
    mean: float = averaged["mean_return"].mean()  # type: ignore[assignment]
    return mean


def tally(runs: list[DopamineRun]) -> str:
    """Count the verdicts without those at 1M frames."""
    found = Counter(
        verdict_of(score, run.figures()[1_000_000 * each])
        for run in runs
        for each in MILLIONS[1:]
        if (score := score_at(run.iterations, 1_000_000 * each)) is not None
    )
    counts = ", ".join(f"{found[word]} {word}" for word in VERDICTS if found[word])
    return f"Verdicts from {MILLIONS[1]}M frames on: {counts or 'none yet'}."


def description(run: DopamineRun) -> str:
    """Say how a run was made."""
    made, millions = run.made, len(run.iterations)
    return (
        f"- {run.game}, {run.label}: {millions}M frames; {made['minutes']:.0f} minutes in all; "
        f"{made['cpu_model']} ({made['cpu_flags'].split()[-1]}), threads: {made['torch_threads']}, "
        f"torch {made['torch']}; begun at commit {made['commit']}, {made['started'][:10]}; "
        f"resumes: {made['resumes']}, notices that one may not be exact: {made['inexact_notices']}"
    )


def command_of(run: DopamineRun) -> str:
    """Return the command that makes such a run, in a folder of the program's choice."""
    return re.sub(r" --run-dir \S+", "", f"dqn {run.made['command']}")


def draw(runs: list[DopamineRun], path: Path) -> None:
    """Draw the mean return of each iteration next to the published seeds, a panel for each game and agent."""
    panels = list(dict.fromkeys((run.game, run.method) for run in runs))
    figure, places = plt.subplots(
        1, len(panels), figsize=(max(5.5, 4 * len(panels)), 4), layout="constrained", squeeze=False
    )
    for place, (game, method) in zip(places[0], panels, strict=True):
        own = [run for run in runs if (run.game, run.method) == (game, method)]
        published = [each for each in own[0].figures().values() if each.env_frames <= 1e6 * max(MILLIONS)]
        frames = [each.env_frames * 1e-6 for each in published]
        place.plot(frames, [each.mean for each in published], "s-", color="0.4", label="Dopamine, 5 seeds")
        bounds = [each.lowest for each in published], [each.highest for each in published]
        place.fill_between(frames, *bounds, color="0.4", alpha=0.2)
        for run in own:
            curve = run.iterations["env_frames"] * 1e-6, run.iterations["mean_return"]
            place.plot(*curve, "o-", markersize=4, label=f"here, seed {run.made['seed']}")
        place.set_title(f"{METHODS[method][0]}, {game}")
        place.set_xlabel("emulator frames (millions)")
        place.grid(alpha=0.3)
        place.legend(fontsize="small")
    places[0][0].set_ylabel("mean return of training games")
    figure.savefig(path, dpi=110, metadata={"Software": None})
    plt.close(figure)


if __name__ == "__main__":
    main()
