"""Keep runs of PQN on Breakout, and make their page: scores at equal frames next to published seeds of DQN.

The tables are those of `gather.py`, in `pqn_breakout/`; the published figures come with the package.

python docs/results/keep_pqn_breakout.py outputs/pqn_breakout_seed1     keep runs, make the page
python docs/results/keep_pqn_breakout.py                                make the page again
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import polars as pl
from equal_frames import bracketed, evaluations_at
from gather import by_name, gather
from keep import WINDOW_EPISODES
from keep_pqn import RESULTS, Run, filled, name_of, number, runs_of, score_at

from atari_dqn.compare.reference.studies import curves

KEPT, PLOT, PAGE = Path("pqn_breakout"), Path("pqn_breakout/curves.png"), Path("pqn_breakout.md")
MILLIONS = (1, 2, 5, 10)
PUBLISHED = {
    ("nnabla_dqn", "dqn"): "DQN, nnabla-rl, evaluation games",
    ("dopamine_jax", "dqn"): "DQN, Dopamine (JAX), training games",
    ("dopamine_jax", "rainbow"): "Rainbow, Dopamine (JAX), training games",
}
"""Study and agent of the package's table, and how the page names them."""
TEXT = """\
# What does PQN learn of Breakout in ten million frames?

[PQN](../algorithms.md#pqn) has no replay and no target network, and plays Breakout in 128 environments. The
mean of the last {window} training games that had ended, and of the evaluation at that time, at 10M of those
from 8M on; for published runs the mean over their seeds, the lowest and the highest seed in brackets. A dash:
no such figure.
†: the cap of 108,000 frames cut games.

{table}

![Return by frames, with published figures, and by minutes]({plot})

{runs}

- **Scores are not comparable in size, because protocols differ.** PQN and nnabla-rl play without sticky
  actions, Dopamine with a quarter of the actions repeated. PQN is evaluated without ε, nnabla-rl's DQN
  with 0.05; a training game of PQN has the ε of its schedule, one of Dopamine 0.01 after its first
  million frames. PQN's games end after 108,000 frames, nnabla-rl's after 400,000.
- **Figures are averages over different spans.** Those of nnabla-rl at 10M are means of the evaluations from
  8M to 12M frames, ours at 10M ends there, so that it is lower while scores rise; below 10M they are single
  evaluations. Those of Dopamine are means of all training games of the million frames before, at 10M of
  those from 7M to 12M; at 1M they include the random games of the beginning. An evaluation of PQN has 10
  games, the last one 30.
- **Dopamine's Rainbow** is C51 with 3-step returns and prioritized replay, without the other parts.
- **Minutes** are those of the whole run, with its evaluations and checkpoints, on the processor named. A run
  that gave notice of a busy machine had other programs next to it, and takes less time alone.
- PQN's ε goes to 0.001 over a tenth of the run, as in its paper, which has 20 times the frames.

**Not shown:** how far PQN's seeds differ, for an agent with one; DQN on this machine; PQN with the 200
million frames of its paper.

Made from [runs.csv](pqn_breakout/runs.csv), [games.csv](pqn_breakout/games.csv) and
[evaluations.csv](pqn_breakout/evaluations.csv) by

```
{commands}
python docs/results/keep_pqn_breakout.py RUN...
```
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", nargs="*", type=Path, help="finished run directories of `pqn` on Breakout")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    if options.runs:
        gather(options.out / KEPT, by_name(options.runs, name_of))
    runs = list(runs_of(options.out / KEPT))
    draw(runs, options.out / PLOT)
    (options.out / PAGE).write_text(page(runs), encoding="utf-8")
    print(page(runs))


def page(runs: list[Run]) -> str:
    """Make the page."""
    return filled(TEXT, runs, table=table(runs), plot=PLOT)


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
    return "\n".join(
        [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|", *(f"| {' | '.join(row)} |" for row in rows)]
    )


def score_of(evaluations: pl.DataFrame) -> str:
    """Format the mean of some evaluations, marked if the cap cut games of one."""
    if not len(evaluations):
        return number(None)
    mean: float = evaluations["mean_return"].mean()  # type: ignore[assignment]
    return number(mean) + " †" * (evaluations["frame_caps"].sum() > 0)


def draw(runs: list[Run], path: Path) -> None:
    """Draw the mean of the last training games and the evaluations, by frames next to published ones."""
    figure, (by_frames, by_minutes) = plt.subplots(1, 2, figsize=(11, 4), sharey=True, layout="constrained")
    for run in runs:
        mean = run.games["episode_return"].rolling_mean(WINDOW_EPISODES)
        by_frames.plot(run.games["env_frames"] * 1e-6, mean, color="C0", label=f"{run.label}, training games")
        evaluated = run.evaluations["env_frames"] * 1e-6, run.evaluations["mean_return"]
        by_frames.plot(*evaluated, "o", color="C0", markersize=4, label=f"{run.label}, evaluations")
        by_minutes.plot(run.games["minutes"], mean, color="C0")
    for color, (place, name) in enumerate(PUBLISHED.items(), start=1):
        found = [each for each in curves("breakout")[place] if each.env_frames <= 1e6 * max(MILLIONS)]
        frames = [each.env_frames * 1e-6 for each in found]
        by_frames.plot(frames, [each.mean for each in found], color=f"C{color}", marker="s", label=name)
        bounds = [each.lowest for each in found], [each.highest for each in found]
        by_frames.fill_between(frames, *bounds, color=f"C{color}", alpha=0.2)
    by_frames.set_xlabel("emulator frames (millions)")
    by_minutes.set_xlabel("minutes since the start")
    by_frames.set_ylabel("return of a game")
    by_minutes.legend(*by_frames.get_legend_handles_labels(), fontsize="small", loc="upper left")
    for place in (by_frames, by_minutes):
        place.grid(alpha=0.3)
    figure.savefig(path, dpi=110, metadata={"Software": None})


if __name__ == "__main__":
    main()
