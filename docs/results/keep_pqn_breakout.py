"""Keep runs of PQN on Breakout, and make their page: scores next to those of DQN, here and published.

The tables are those of `gather.py`, in `pqn_breakout/`; DQN's runs are among those that `keep_track_a.py`
kept, and the published figures come with the package.

python docs/results/keep_pqn_breakout.py outputs/pqn_breakout_seed1     keep runs, make the page
python docs/results/keep_pqn_breakout.py                                make the page again
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import matplotlib.pyplot as plt
import polars as pl
from equal_frames import bracketed, evaluations_at, has_span
from gather import by_name, gather
from keep import WINDOW_EPISODES
from keep_pqn import RESULTS, Run, descriptions, filled, name_of, number, runs_of, score_at

from atari_dqn.compare.reference.studies import curves

KEPT, PLOT, PAGE = Path("pqn_breakout"), Path("pqn_breakout/curves.png"), Path("pqn_breakout.md")
DQN_KEPT = Path("track_a")
DQN_RUN = "trackA_lua_he_doubled_area_breakout_seed1"
"""DQN's run: Track A with four settings of nnabla-rl's code."""
MILLIONS, MINUTES = (1, 2, 5, 10), (15, 30, 60, 90)
PUBLISHED = {
    ("nnabla_dqn", "dqn"): "DQN, nnabla-rl, evaluation games",
    ("dopamine_jax", "dqn"): "DQN, Dopamine (JAX), training games",
    ("dopamine_jax", "rainbow"): "Rainbow, Dopamine (JAX), training games",
}
"""Study and agent of the package's table, and how the page names them."""
TEXT = """\
# What does PQN learn of Breakout in ten million frames?

[PQN](../algorithms.md#pqn) has no replay and no target network, and plays Breakout in 128 environments. DQN
is [Track A with four settings of nnabla-rl's code](track_a.md), in one environment. The mean of the last
{window} training games that had ended, and of the evaluation at that time, at 10M of those from 8M on; for
published runs the mean over their seeds, the lowest and the highest seed in brackets. A dash: no such figure.
†: the cap of 108,000 frames cut games.

{table}

After equal minutes, the mean of the last {window} training games:

{minutes}

![Return by frames, with published figures, and by minutes]({plot})

{runs}
{dqn_runs}

- **The minutes compare two processes, not two algorithms at their best.** PQN had two threads and DQN one,
  and both had other programs next to them. With two threads, alone, DQN plays [1,535 frames/s on
  Pong](speed.md): ten million frames take 109 minutes then, without evaluations and checkpoints.
- **Scores are not comparable in size, because protocols differ.** PQN, Track A and nnabla-rl play without
  sticky actions, Dopamine with a quarter of the actions repeated. PQN is evaluated without ε, DQN here and in
  nnabla-rl with 0.05; a training game of PQN and of Track A has the ε of its schedule, which ends at 0.001
  and at 0.1, one of Dopamine 0.01 after its first million frames. PQN's games end after 108,000 frames, those
  of Track A after 18,000, nnabla-rl's after 400,000.
- **Figures are averages over different spans.** Those of nnabla-rl and Track A at 10M are means of the
  evaluations from 8M to 12M frames, PQN's ends at 10M, so that it is lower while scores rise; below 10M they
  are single evaluations. Those of Dopamine are means of all training games of the million frames before, at
  10M of those from 7M to 12M; at 1M they include the random games of the beginning. An evaluation of PQN has
  10 games, the last one 30, one of Track A 30.
- **Dopamine's Rainbow** is C51 with 3-step returns and prioritized replay, without the other parts.
- **Minutes** are those of the whole run, with its evaluations and checkpoints, on the processor named. A run
  that gave notice of a busy machine had other programs next to it, and takes less time alone.
- PQN's ε goes to 0.001 over a tenth of the run, as in its paper, which has 20 times the frames.

**Not shown:** how far seeds differ, for an agent with one; DQN with two cores to itself; PQN with the 200
million frames of its paper.

Made from [runs.csv](pqn_breakout/runs.csv), [games.csv](pqn_breakout/games.csv) and
[evaluations.csv](pqn_breakout/evaluations.csv), and from [Track A's tables](track_a/runs.csv), by

```
{commands}
python docs/results/keep_pqn_breakout.py RUN...
```
"""


@dataclass(frozen=True, kw_only=True)
class DQNRun(Run):
    """A kept run of Track A on Breakout."""

    @property
    def label(self) -> str:
        """The agent, its track and the seed, for display."""
        return f"DQN, Track A*, seed {self.made['seed']}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", nargs="*", type=Path, help="finished run directories of `pqn` on Breakout")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    if options.runs:
        gather(options.out / KEPT, by_name(options.runs, name_of))
    runs, dqn = list(runs_of(options.out / KEPT)), dqn_runs(options.out)
    draw(runs, dqn, options.out / PLOT)
    (options.out / PAGE).write_text(page(runs, dqn), encoding="utf-8")
    print(page(runs, dqn))


def dqn_runs(results: Path) -> list[DQNRun]:
    """Return the run of DQN, which another page keeps, if it has come to the last frames of the table."""
    kept = (run for run in runs_of(results / DQN_KEPT) if run.made["run"] == DQN_RUN)
    return [DQNRun(**vars(run)) for run in kept if has_span(run.evaluations, MILLIONS[-1])]


def page(runs: list[Run], dqn: list[DQNRun]) -> str:
    """Make the page."""
    return filled(
        TEXT,
        runs,
        table=table([*runs, *dqn]),
        plot=PLOT,
        minutes=minutes_table([*runs, *dqn]),
        dqn_runs=descriptions(dqn).replace("*", r"\*"),
    )


def table(runs: list[Run]) -> str:
    """Format the scores at equal frames: ours, then the published ones."""
    heads = ["frames", *(f"{each}M" for each in MILLIONS)]
    rows = []
    for run in runs:
        trained = (number(score_at(run.games, "env_frames", 1e6 * each)) for each in MILLIONS)
        evaluated = (score_of(evaluations_at(run.evaluations, each)) for each in MILLIONS)
        rows += [[f"{run.label}, training games", *trained], [f"{run.label}, evaluations", *evaluated]]
    for place, name in PUBLISHED.items():
        found = {figure.env_frames: figure for figure in curves("breakout")[place]}
        rows.append([name, *(bracketed(found.get(each * 1_000_000)) for each in MILLIONS)])
    return formatted(heads, rows)


def minutes_table(runs: list[Run]) -> str:
    """Format the scores of training games after equal minutes."""
    rows = [[run.label, *(number(score_at(run.games, "minutes", each)) for each in MINUTES)] for run in runs]
    return formatted(["minutes", *map(str, MINUTES)], rows)


def formatted(heads: list[str], rows: list[list[str]]) -> str:
    """Format a table in Markdown."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines).replace("*", r"\*")


def score_of(evaluations: pl.DataFrame) -> str:
    """Format the mean of some evaluations, marked if the cap cut games of one."""
    if not len(evaluations):
        return number(None)
    mean: float = evaluations["mean_return"].mean()  # type: ignore[assignment]
    return number(mean) + " †" * (evaluations["frame_caps"].sum() > 0)


def draw(runs: list[Run], dqn: list[DQNRun], path: Path) -> None:
    """Draw the mean of the last training games and the evaluations, by frames next to published ones."""
    figure, (by_frames, by_minutes) = plt.subplots(1, 2, figsize=(11, 5), sharey=True, layout="constrained")
    for run in [*runs, *dqn]:
        color, label = "C4" if isinstance(run, DQNRun) else "C0", run.label
        mean = run.games["episode_return"].rolling_mean(WINDOW_EPISODES)
        by_frames.plot(run.games["env_frames"] * 1e-6, mean, color=color, label=f"{label}, training games")
        evaluated = run.evaluations["env_frames"] * 1e-6, run.evaluations["mean_return"]
        by_frames.plot(*evaluated, "o", color=color, markersize=4, label=f"{label}, evaluations")
        by_minutes.plot(run.games["minutes"], mean, color=color)
    for color, (place, name) in zip(("C1", "C2", "C3"), PUBLISHED.items(), strict=True):
        found = [each for each in curves("breakout")[place] if each.env_frames <= 1e6 * max(MILLIONS)]
        frames = [each.env_frames * 1e-6 for each in found]
        by_frames.plot(frames, [each.mean for each in found], color=color, marker="s", label=name)
        bounds = [each.lowest for each in found], [each.highest for each in found]
        by_frames.fill_between(frames, *bounds, color=color, alpha=0.2)
    by_frames.set_xlabel("emulator frames (millions)")
    by_minutes.set_xlabel("minutes since the start")
    by_frames.set_ylabel("return of a game")
    shown = by_frames.get_legend_handles_labels()
    figure.legend(*shown, loc="outside lower center", ncols=2, fontsize="small")
    for place in (by_frames, by_minutes):
        place.grid(alpha=0.3)
    figure.savefig(path, dpi=110, metadata={"Software": None})


if __name__ == "__main__":
    main()
