"""Keep runs of `dqn sweep ladder_quick`, and make their page: what each part of Rainbow adds, with intervals.

Runs that are not finished are named and left out. A run that is kept again replaces its rows. The page and
the plot are made from the tables:

python docs/results/keep_ladder.py outputs/ladder_quick/*_seed*     keep runs, make the page
python docs/results/keep_ladder.py                                  make the page again
"""

from __future__ import annotations

import argparse
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import polars as pl
from gather import by_name, every, final_of, finished_of, gather_evaluations, processors, trained

from atari_dqn.compare.statistics import Estimate, column, difference

RESULTS = Path(__file__).parent
KEPT, PLOT, PAGE = Path("ladder"), Path("ladder/scores.png"), Path("ladder.md")
MARK, NO_INTERVAL = "‡", "[–]"
FALSE_SHARES = (1 / 40, 1 / 20)
"""The share of Welch's intervals that exclude 0 where nothing differs, with two seeds and with many."""
MILLIONS = 2
"""Emulator frames of a run, in millions."""
STEPS = {
    "1_dqn": "DQN",
    "2_double": "+ Double",
    "3_prioritized": "+ prioritized replay",
    "4_dueling": "+ dueling",
    "5_n_step": "+ 5-step returns",
    "6_c51": "+ C51",
    "7_noisy": "+ noisy layers instead of ε",
}
"""Methods of the sweep, each with what the one before lacks."""
TEXT = """\
# What does each part of Rainbow add, with the settings of `pong_quick`?

Seven agents from plain DQN to Rainbow, each with one part more than the one before
([`ladder_quick`](../../runs/sweeps/ladder_quick.toml)): two million frames of a game, then 30 games with the
last weights. A score is the mean of these games; the increment is the mean over seeds minus that of the step
before, with its 95 % interval.

{tables}

{summary}

![Scores of every seed and step]({plot})

- **An interval is over seeds**, by Welch's t-test
  ([decision 89](../decisions/0089-a-difference-is-shown-by-welchs-interval.md)); of a few seeds it is wide.
  If no part changed anything, one interval in twenty to forty would exclude 0 all the same: with the
  {intervals} of this page, at least one would in {false_finds} of all cases.{dash}
- **Neighbouring increments share a step**: a lucky seed of one raises its increment and lowers the next.
- **The order matters**: an increment is that of a part on top of all before it, in this order.
- **Every step has the settings of `pong_quick`**, which were chosen for a DQN with Double, dueling, 5-step
  returns and prioritized replay: a small network, eight environments, one update for eight steps, a learning
  rate of 5e-4. A part that needs others may do better with them. Games are played without sticky actions, at
  most 18,000 frames a game.
- **ε of evaluations is 0.05**, but 0 with noisy layers, which take its place. {mark}: the scores of this step
  and of the one before are of different evaluation protocols.
- {frames} in {count} runs, {threads} each, on {processors}, torch {torch}, begun at {commits}, {dates};
  resumed {resumes} times in all, with {inexact} notices that a resume may not be exact. Two runs trained at
  once, next to other work.

**Not shown:** other games; other orders of the parts; a part taken away from Rainbow; longer runs; Track B's
own settings (`dqn sweep ladder`).

Made from [runs.csv](ladder/runs.csv) and [evaluations.csv](ladder/evaluations.csv) by

```
dqn sweep ladder_quick
python docs/results/keep_ladder.py RUN...
```
"""


@dataclass(frozen=True, kw_only=True)
class Step:
    """The scores of one step of the ladder on one game."""

    method: str
    scores: tuple[float, ...]
    """The mean of the final games, by seed."""
    protocols: frozenset[str]
    """The fingerprints of the protocols of the evaluations."""
    increment: Estimate | None
    """The mean over seeds minus that of the step before; None if that has no run."""
    mark: str
    """`‡` if the protocol is another than that of the step before, else empty."""

    @property
    def sign(self) -> str:
        """What the interval of the increment shows: `better`, `worse` or `nothing`; empty without one."""
        if self.increment is None or self.increment.interval is None:
            return ""
        interval = self.increment.interval
        return "better" if interval.low > 0 else "worse" if interval.high < 0 else "nothing"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", nargs="*", type=Path, help="run directories of `ladder_quick`")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    if options.runs:
        keep(options.runs, options.out / KEPT)
    tables = [pl.read_csv(options.out / KEPT / f"{name}.csv") for name in ("runs", "evaluations")]
    steps = steps_of(*tables)
    draw(steps, options.out / PLOT)
    (options.out / PAGE).write_text(page(steps, tables[0]), encoding="utf-8")
    print(page(steps, tables[0]))


def keep(runs: list[Path], folder: Path) -> None:
    """Add the finished runs to the tables of a folder."""
    finished = by_name(finished_of(runs))
    gather_evaluations(folder, finished, lambda run: trained(run) | {"method": method_of(run)})


def method_of(run: Path) -> str:
    """Read the method of a run from its name, which begins with it; those of `dqn sweep ladder` do too."""
    found = [method for method in STEPS if run.name.startswith(f"{method}_")]
    if len(found) != 1 or budget_of(run) != MILLIONS * 1_000_000:
        raise SystemExit(f"{run}: expected a run of ladder_quick")
    return found[0]


def budget_of(run: Path) -> int:
    """Read the emulator frames of a run from its spec."""
    return int(tomllib.loads((run / "spec.toml").read_text())["training"]["total_frames"])


def steps_of(runs: pl.DataFrame, evaluations: pl.DataFrame) -> dict[str, list[Step]]:
    """Collect the steps of each game, in the ladder's order."""
    final = final_of(evaluations).join(runs, on="run").sort("game", "seed")
    return {str(game): list(_steps(rows)) for (game,), rows in final.group_by("game", maintain_order=True)}


def _steps(final: pl.DataFrame) -> Iterator[Step]:
    before: Step | None = None
    for method in STEPS:
        rows = final.filter(pl.col("method") == method)
        scores, protocols = tuple(rows["mean_return"]), frozenset(rows["protocol"])
        increment, mark = None, ""
        if scores and before:
            increment = difference(column(scores), column(before.scores))
            mark = MARK if protocols != before.protocols else ""
        step = Step(method=method, scores=scores, protocols=protocols, increment=increment, mark=mark)
        before = step if scores else None
        if before:
            yield before


def page(steps: dict[str, list[Step]], runs: pl.DataFrame) -> str:
    """Make the page."""
    frames = sum(len(step.scores) for ladder in steps.values() for step in ladder) * MILLIONS
    tables = "\n\n".join(table(game, ladder) for game, ladder in steps.items())
    intervals = sum(bool(step.sign) for ladder in steps.values() for step in ladder)
    return TEXT.format(
        tables=tables,
        intervals=intervals,
        false_finds=false_finds(intervals),
        dash=" A dash: a step\n  with a single seed." if NO_INTERVAL in tables else "",
        summary="\n".join(summary(game, ladder) for game, ladder in steps.items()),
        plot=PLOT,
        mark=MARK,
        frames=f"{frames} million frames",
        count=len(runs),
        threads=f"{runs['torch_threads'].max()} thread",
        processors=processors(runs),
        torch=every(runs, "torch"),
        commits=every(runs, "commit"),
        dates=every(runs, "started", 10),
        resumes=runs["resumes"].sum(),
        inexact=runs["inexact_notices"].sum(),
    )


def false_finds(intervals: int) -> str:
    """Say how often at least one of several intervals excludes 0 where nothing differs."""
    low, high = (1 - (1 - share) ** intervals for share in FALSE_SHARES)
    return f"{100 * low:.0f} to {100 * high:.0f} %"


def table(game: str, ladder: list[Step]) -> str:
    """Format the steps of a game."""
    lines = [f"| {game} | score by seed | mean | increment |", "|---|---|---|---|"]
    for step in ladder:
        each = "; ".join(map(number, step.scores))
        cells = [STEPS[step.method], each, number(float(np.mean(step.scores))), increment(step)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def increment(step: Step) -> str:
    """Format an increment with its interval, if it has one."""
    if step.increment is None:
        return ""
    found, interval = signed(step.increment.value), step.increment.interval
    bounds = f"[{signed(interval.low)}, {signed(interval.high)}]" if interval else NO_INTERVAL
    return f"{found} {bounds}{step.mark}"


def summary(game: str, ladder: list[Step]) -> str:
    """Say of which steps the interval lies above 0, below 0, or on both sides, and which have no run."""
    words = {"better": "better with", "worse": "worse with", "nothing": "no difference shown with"}
    facts = []
    for sign, text in words.items():
        found = [STEPS[step.method].removeprefix("+ ") for step in ladder if step.sign == sign]
        if found:
            facts.append(f"{text} {', '.join(found)}")
    missing = [name for method, name in STEPS.items() if method not in {step.method for step in ladder}]
    of_runs = f" No finished run: {', '.join(missing)}." if missing else ""
    return f"**{game}:** {'; '.join(facts) or 'no interval yet'}.{of_runs}"


def number(value: float) -> str:
    return f"{round(value, 1) + 0.0:.1f}".replace("-", "−")


def signed(value: float) -> str:
    return f"{round(value, 1) + 0.0:+.1f}".replace("-", "−")


def draw(steps: dict[str, list[Step]], path: Path) -> None:
    """Draw the score of every seed, and the means over seeds, a panel for each game."""
    figure, places = plt.subplots(
        1, len(steps), figsize=(5.2 * len(steps), 4.2), layout="constrained", squeeze=False
    )
    for place, (game, ladder) in zip(places[0], steps.items(), strict=True):
        at = np.arange(len(ladder))
        for x, step in zip(at, ladder, strict=True):
            label = "a seed" if x == 0 else None
            xs = [x] * len(step.scores)
            place.plot(xs, step.scores, "o", color="C0", alpha=0.6, markersize=5, label=label)
        place.plot(at, [np.mean(step.scores) for step in ladder], color="C0", label="mean over seeds")
        place.set_xticks(at, [f"{STEPS[each.method]}{each.mark}" for each in ladder], rotation=40, ha="right")
        place.set_title(game)
        place.grid(alpha=0.3)
    places[0][0].set_ylabel("mean of the final 30 games")
    places[0][0].legend(loc="lower right", fontsize="small")
    figure.savefig(path, dpi=110, metadata={"Software": None})
    plt.close(figure)


if __name__ == "__main__":
    main()
