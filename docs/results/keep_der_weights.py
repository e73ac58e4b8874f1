"""Keep runs of `atari100k_der` with two forms of importance weights, and make their page.

Both forms have the same seeds of the same games. Runs that are not finished are named and left out. A run
that is kept again replaces its rows. The page and the plot are made from the tables:

python docs/results/keep_der_weights.py outputs/der_seeds/*_seed* outputs/der_weights/*_seed*
python docs/results/keep_der_weights.py                                                 make the page again
"""

from __future__ import annotations

import argparse
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import polars as pl
from gather import every, final_of, finished_of, gather_evaluations, processors, trained
from keep import read
from keep_der import PUBLISHED, marked, number

from atari_dqn.compare.reference.atari100k import columns_of
from atari_dqn.compare.statistics import Estimate, column, difference

RESULTS = Path(__file__).parent
KEPT, PLOT, PAGE = Path("der_weights"), Path("der_weights/curves.png"), Path("der_weights.md")
FORMS = {"replay": "of the replay", "minibatch": "of the minibatch"}
"""What importance weights are divided by the largest of, `replay.weight_maximum`, and its words."""
RECALLED = "der_agarwal2021"
TEXT = """\
# Do importance weights explain the scores of data-efficient Rainbow?

[`atari100k_der`](../../runs/atari100k_der.toml) had a lower interquartile mean over [26 games](der.md) than
is published. Prioritized replay weights a transition by (N P)^−β, divided by the largest weight. The papers
do not say in which set that is. The published code of DER takes the minibatch, and adds 1e-10 to a priority;
until November 2026 this spec took the whole replay, and added 0.01
([decision 79](../decisions/0079-importance-weights-as-each-agents-code.md)). The same seeds with both: the
mean of the final 100 games.

{table}

{means}

{answer}

![Evaluations by frames, a line for each seed]({plot})

- **The mean weight** is that of the last report of a run, in minibatches that are drawn for it.
- A difference is of the means over seeds, with the 95 % interval of Welch's t-test
  ([decision 89](../decisions/0089-a-difference-is-shown-by-welchs-interval.md)): of two seeds it is wide, and
  one that contains 0 shows no difference.
- The games were chosen because seed 1 was low on them; seed 1 is not among these runs. [der.md](der.md) has
  further seeds with the weights of the replay.
- "Dopamine's form" is the mean over 100 runs of the agent of Agarwal et al. (2021), which differs in its
  network, returns of 10 steps and fixed β, as it was recalled, not read.
- †: the cap of 108,000 frames cut games; published games have the same cap.
- {made}
- **Form and commit go together**: {commits}. Between these commits kernels changed too, in the last bits of
  their results.

**Not shown:** other games; more seeds; the constant and the set one without the other.

Made from [runs.csv](der_weights/runs.csv) and [evaluations.csv](der_weights/evaluations.csv) by sweeps of
`spec = "atari100k_der"` with these games and seeds. The runs with the weights of the replay are of an earlier
commit, whose spec had them; today they are made with `[set]` `replay.weight_maximum = "replay"` and
`replay.priority_offset = 0.01`. Then

```
python docs/results/keep_der_weights.py RUN...
```
"""


@dataclass(frozen=True, kw_only=True)
class Form:
    """The seeds of one game with one form of weights."""

    seeds: tuple[int, ...]
    scores: tuple[float, ...]
    """The mean of each seed's final games."""
    frame_caps: tuple[int, ...]
    """The number of each seed's final games that the frame cap cut."""
    mean_weight: float
    """The mean over seeds of the weights' mean in their last report."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", nargs="*", type=Path, help="run directories of `atari100k_der`")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    if options.runs:
        keep(options.runs, options.out / KEPT)
    runs, evaluations = (pl.read_csv(options.out / KEPT / f"{name}.csv") for name in ("runs", "evaluations"))
    draw(runs, evaluations, options.out / PLOT)
    (options.out / PAGE).write_text(page(runs, evaluations), encoding="utf-8")
    print(page(runs, evaluations))


def keep(runs: list[Path], folder: Path) -> None:
    """Add the finished runs to the tables of a folder."""
    finished = {f"{run.name}_{weights_of(run)['weights']}": run for run in finished_of(runs)}
    gather_evaluations(folder, finished, lambda run: trained(run) | weights_of(run))


def weights_of(run: Path) -> dict[str, Any]:
    """Read the form of a run's importance weights, and their mean in its last report."""
    replay = tomllib.loads((run / "spec.toml").read_text())["replay"]
    mean = read(run, "replay_log")["mean_weight"][-1]
    return {"weights": replay.get("weight_maximum", "replay"), "mean_weight": round(mean, 4)}


def forms_of(runs: pl.DataFrame, evaluations: pl.DataFrame) -> dict[str, dict[str, Form]]:
    """Collect the seeds of each game and form, of both forms the same seeds."""
    final = final_of(evaluations).join(runs, on="run").sort("game", "seed")
    found = {}
    for (game,), rows in final.group_by("game", maintain_order=True):
        seeds = [set(rows.filter(pl.col("weights") == form)["seed"]) for form in FORMS]
        both = rows.filter(pl.col("seed").is_in(list(set.intersection(*seeds))))
        if len(both):
            found[str(game)] = {form: _form(both.filter(pl.col("weights") == form)) for form in FORMS}
    return found


def _form(rows: pl.DataFrame) -> Form:
    weights = [float(weight) for weight in rows["mean_weight"]]
    return Form(
        seeds=tuple(rows["seed"]),
        scores=tuple(rows["mean_return"]),
        frame_caps=tuple(rows["frame_caps"]),
        mean_weight=float(np.mean(weights)),
    )


def page(runs: pl.DataFrame, evaluations: pl.DataFrame) -> str:
    """Make the page."""
    games = forms_of(runs, evaluations)
    return TEXT.format(
        table="\n".join(table(games)),
        means="\n".join(f"- {means(game, forms)}" for game, forms in games.items()),
        answer=answer(games),
        plot=PLOT,
        made=made(runs),
        commits=commits(runs),
    )


def table(games: dict[str, dict[str, Form]]) -> Iterator[str]:
    """Yield the lines of the table: a row for each game and form."""
    yield "| game | largest weight | score by seed | mean | mean weight |"
    yield "|---|---|---|---|---|"
    for game, forms in games.items():
        for form, found in forms.items():
            each = "; ".join(map(marked, found.scores, found.frame_caps))
            mean = number(float(np.mean(found.scores)))
            yield f"| {game} | {FORMS[form]} | {each} | {mean} | {found.mean_weight:.2f} |"


def difference_of(forms: dict[str, Form]) -> Estimate:
    """Estimate the mean with the minibatch's weights less that with the replay's."""
    return difference(column(forms["minibatch"].scores), column(forms["replay"].scores))


def answer(games: dict[str, dict[str, Form]]) -> str:
    """Name the games on which the interval of the difference excludes 0."""
    intervals = {game: difference_of(forms).interval for game, forms in games.items()}
    shown = [game for game, each in intervals.items() if each and (each.low > 0 or each.high < 0)]
    return f"**A difference is shown on {' and '.join(shown) or 'neither game'}.**"


def means(game: str, forms: dict[str, Form]) -> str:
    """Say by how much the means of the forms differ, and what is published."""
    found = difference_of(forms)
    between = found.interval
    interval = f" [{number(between.low)}, {number(between.high)}]" if between else ""
    published = {each.agent: figure.mean for each, figure in columns_of(game)}
    recalled = f"; Dopamine's form {number(published[RECALLED])}" if RECALLED in published else ""
    return (
        f"**{game}**, seeds {', '.join(map(str, forms['replay'].seeds))}: the minibatch's less the replay's "
        f"{number(found.value)}{interval}; published {number(published[PUBLISHED])}{recalled}"
    )


def commits(runs: pl.DataFrame) -> str:
    """List the commits of each form's runs."""
    of_form = {form: runs.filter(pl.col("weights") == form) for form in FORMS}
    return "; ".join(f"those {FORMS[form]} are of {every(rows, 'commit')}" for form, rows in of_form.items())


def made(runs: pl.DataFrame) -> str:
    """Say on what the runs were made, and how often they were resumed."""
    threads = every(runs, "torch_threads")
    commits, dates = every(runs, "commit"), every(runs, "started", 10)
    return (
        f"{len(runs)} runs of {threads} thread each on {processors(runs)}, torch {every(runs, 'torch')}, "
        f"begun at commits {commits}, {dates}; resumed {runs['resumes'].sum()} times, with "
        f"{runs['inexact_notices'].sum()} notices that a resume may not be exact."
    )


def draw(runs: pl.DataFrame, evaluations: pl.DataFrame, path: Path) -> None:
    """Draw the evaluations of every seed by frames, a panel for each game."""
    games = list(forms_of(runs, evaluations))
    figure, places = plt.subplots(
        1, len(games), figsize=(5 * len(games), 4), layout="constrained", squeeze=False
    )
    for place, game in zip(places[0], games, strict=True):
        for color, (form, words) in enumerate(FORMS.items()):
            own = runs.filter((pl.col("game") == game) & (pl.col("weights") == form))
            for number_of_run, run in enumerate(own["run"]):
                rows = evaluations.filter(pl.col("run") == run)
                label = f"largest weight {words}" if number_of_run == 0 else None
                place.plot(
                    rows["env_frames"] / 1_000, rows["mean_return"], "o-", color=f"C{color}", markersize=3,
                    alpha=0.7, label=label,
                )  # fmt: skip
        place.set_title(game)
        place.set_xlabel("emulator frames (thousands)")
        place.grid(alpha=0.3)
    places[0][0].set_ylabel("mean return of an evaluation")
    places[0][0].legend(loc="upper left", fontsize="small")
    figure.savefig(path, dpi=110, metadata={"Software": None})
    plt.close(figure)


if __name__ == "__main__":
    main()
