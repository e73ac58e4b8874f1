"""Keep runs of `dqn sweep atari100k_der`, and make their page: scores next to the published ones.

Runs that are not finished are named and left out. A run that is kept again replaces its rows. The page and
the plot are made from the tables:

python docs/results/keep_der.py outputs/atari100k_der/atari100k_der_alien_seed1     keep runs, make the page
python docs/results/keep_der.py                                                     the page and plot alone
"""

from __future__ import annotations

import argparse
import shutil
import tomllib
from dataclasses import dataclass
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import polars as pl
from gather import by_name, every, final_of, finished_of, gather_evaluations, processors
from numpy.typing import NDArray

from atari_dqn.compare.reference.atari100k import columns_of
from atari_dqn.compare.reference.studies import DEFAULT_HUMAN_TABLE, human_random
from atari_dqn.compare.statistics import RESAMPLES, SEED, Scores, iqm

RESULTS = Path(__file__).parent
KEPT, PLOT, PAGE = Path("der"), Path("der/scores.png"), Path("der.md")
PUBLISHED = "der_vanhasselt2019"
FORM = ("replay", 0.01)
"""The `weight_maximum` and `priority_offset` of the kept runs."""
GAMES = 26
FAR_ABOVE_RANDOM = 0.1
"""A human-normalised score."""

TEXT = """\
# Does data-efficient Rainbow score what is published?

[`atari100k_der`](../../runs/atari100k_der.toml) on {games} of Atari 100k: 400,000 frames,
then 100 games with the last weights. Of seed 1 the mean of these games, ± their standard deviation, and the
mean that van Hasselt et al. (2019) print; human-normalised: 0 is random play, 1 a human. **The runs have the
importance weights that the spec had until November 2026**, `replay.weight_maximum = "replay"` and
`replay.priority_offset = 0.01`; [what today's weights change](der_weights.md).

{table}

{over_games}

{far_below}

{more_seeds}![Human-normalised scores of each game, ours and published]({plot})

- **An interval is over the choice of games**: {resamples:,} times as many games are drawn from these with
  replacement. It does not say how far seeds differ. That 0 is outside the interval of the difference
  therefore does not show that the agent is worse: other seeds would give another difference.
- **A published score is a mean over seeds, ours is of one.** Where few seeds score far more than the others,
  as on kung_fu_master, one seed is below the mean more often than above it.
- Made with {threads} on {processors}, torch {torch}, begun at {commits}, {dates}. Runs were
  interrupted and resumed {resumes} times in all; notices that a resume may not be exact were counted for
  {recorded} of them alone: {inexact}. Minutes are those of training without the final games; two
  runs trained at once, next to other work, so they are no measure of speed
  ([costs](../algorithms.md#what-an-agent-costs)).
- †: the cap of 108,000 frames cut games.

**Not shown:** {missing}other seeds of {others}; today's spec of DER on {games}; the forms of DER with other
hyperparameters, such as Dopamine's.

Made from [runs.csv](der/runs.csv) and [evaluations.csv](der/evaluations.csv), with the complete
[spec](der/spec.toml), by the sweep `atari100k_der` with the two values that are named above in its `[set]`:

```
dqn sweep FILE
python docs/results/keep_der.py RUN...
```
"""


@dataclass(frozen=True, kw_only=True)
class GameScore:
    """The score of our first seed on a game, those of later seeds, and the published one."""

    game: str
    text: str
    """The mean and standard deviation of the first seed's games."""
    mean: float
    """The mean of the first seed's games."""
    later_means: tuple[float, ...]
    """The mean of each later seed's games."""
    later_caps: tuple[int, ...]
    """The number of each later seed's games that the frame cap cut."""
    published: float
    minutes: float

    def normalised(self, score: float) -> float:
        """Return the human-normalised score on this game."""
        human = human_random(self.game, DEFAULT_HUMAN_TABLE)
        assert human is not None, "every game of Atari 100k has a human score"
        return human.normalised(score)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", nargs="*", type=Path, help="run directories of `atari100k_der`")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    if options.runs:
        keep(options.runs, options.out / KEPT)
    tables = [pl.read_csv(options.out / KEPT / f"{name}.csv") for name in ("runs", "evaluations")]
    scores = game_scores(*tables)
    draw(scores, options.out / PLOT)
    (options.out / PAGE).write_text(page(scores, tables[0]), encoding="utf-8")
    print(page(scores, tables[0]))


def keep(runs: list[Path], folder: Path) -> None:
    """Add the finished runs to the tables of a folder."""
    finished = finished_of(runs)
    for run in finished:
        check_form(run)
    gather_evaluations(folder, by_name(finished))
    shutil.copy(finished[0] / "spec.toml", folder / "spec.toml")


def check_form(run: Path) -> None:
    """Exit if a run has not the importance weights that the page names, such as one of today's spec."""
    replay = tomllib.loads((run / "spec.toml").read_text())["replay"]
    found = (replay.get("weight_maximum", "replay"), replay["priority_offset"])
    if found != FORM:
        raise SystemExit(f"{run}: has the weights {found}, expected {FORM}; keep it with other tables")


def game_scores(runs: pl.DataFrame, evaluations: pl.DataFrame) -> list[GameScore]:
    """Join the final scores of the runs with the published ones, by game."""
    final = final_of(evaluations).join(runs, on="run").sort("game", "seed")
    return [score_of(str(game), seeds) for (game,), seeds in final.group_by("game", maintain_order=True)]


def score_of(game: str, seeds: pl.DataFrame) -> GameScore:
    """Collect the scores of a game from the final evaluations of its seeds, in their order."""
    first, *later = seeds.iter_rows(named=True)
    if first["seed"] != 1:
        raise SystemExit(f"{game}: seed 1 is not kept")
    published = {column.agent: figure.mean for column, figure in columns_of(game)}
    return GameScore(
        game=game,
        text=f"{number(first['mean_return'])} ± {marked(first['std_return'], first['frame_caps'])}",
        mean=first["mean_return"],
        later_means=tuple(row["mean_return"] for row in later),
        later_caps=tuple(row["frame_caps"] for row in later),
        published=published[PUBLISHED],
        minutes=first["minutes"],
    )


def page(scores: list[GameScore], runs: pl.DataFrame) -> str:
    """Make the page."""
    left = GAMES - len(scores)
    return TEXT.format(
        games=f"{len(scores)} of the {GAMES} games" if left else f"all {GAMES} games",
        table=table(scores),
        over_games=over_games(scores),
        far_below=far_below(scores),
        more_seeds=more_seeds(scores),
        others="most games" if any(score.later_means for score in scores) else "every game",
        plot=PLOT,
        resamples=RESAMPLES,
        threads=f"{runs['torch_threads'].max()} thread each",
        processors=processors(runs),
        torch=every(runs, "torch"),
        commits=every(runs, "commit"),
        dates=every(runs, "started", 10),
        resumes=runs["resumes"].sum(),
        recorded=runs["inexact_notices"].count(),
        inexact=runs["inexact_notices"].sum(),
        missing=f"the other {left} games; " if left else "",
    )


def table(scores: list[GameScore]) -> str:
    """Format the scores, a row for each game."""
    heads = ["game", "here", "published", "here, normalised", "published, normalised", "minutes"]
    rows = [
        [
            score.game, score.text, number(score.published), f"{score.normalised(score.mean):.3f}",
            f"{score.normalised(score.published):.3f}", f"{score.minutes:.0f}",
        ]
        for score in scores
    ]  # fmt: skip
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines).replace("-0.", "−0.")


def over_games(scores: list[GameScore]) -> str:
    """State the interquartile means over the games and their difference, with intervals over games."""
    ours, theirs = normalised(scores)
    return (
        f"**Interquartile mean over these games:** {bounds(ours)} here, {bounds(theirs)} published; the "
        f"difference is {difference(ours, theirs)}."
    )


def far_below(scores: list[GameScore]) -> str:
    """Name the games on which ours is less than half of a published score that is well above random play."""
    ours, theirs = normalised(scores)
    found = [
        score.game
        for score, mine, other in zip(scores, ours, theirs, strict=True)
        if other > FAR_ABOVE_RANDOM and mine < other / 2
    ]
    names = ", ".join(f"`{game}`" for game in found)
    return (
        f"Less than half of what is published, where that is above {FAR_ABOVE_RANDOM}: {names}.\n"
        "One seed does not say whether it was unlucky, or whether the agent differs from its authors'."
    )


def more_seeds(scores: list[GameScore]) -> str:
    """Format the scores of the later seeds of the games that have any; empty if none has."""
    several = [score for score in scores if score.later_means]
    if not several:
        return ""
    lines = ["| game | seed 1 | later seeds | mean of these | published |", "| --- | --- | --- | --- | --- |"]
    for score in several:
        each = ", ".join(map(marked, score.later_means, score.later_caps))
        mean = number(float(np.mean(score.later_means)))
        lines.append(f"| {score.game} | {number(score.mean)} | {each} | {mean} | {number(score.published)} |")
    return (
        "More seeds were trained of games whose first seed was low. Since it was chosen for that, the mean\n"
        "is that of the later seeds, and none of them is part of the means above:\n\n"
        + "\n".join(lines)
        + "\n\n"
    )


def normalised(scores: list[GameScore]) -> tuple[Scores, Scores]:
    """Return the human-normalised scores of all games, ours and the published ones. f64[M], f64[M]."""
    ours = np.array([score.normalised(score.mean) for score in scores])
    return ours, np.array([score.normalised(score.published) for score in scores])


def bounds(values: Scores) -> str:
    """Format the interquartile mean of scores f64[M] with its interval over games."""
    return interval(float(iqm(values[None])), iqm(values[_draws(len(values))][:, None]))


def difference(ours: Scores, theirs: Scores) -> str:
    """Format the difference of interquartile means, with an interval over games drawn for both alike."""
    draws = _draws(len(ours))
    resampled = iqm(ours[draws][:, None]) - iqm(theirs[draws][:, None])
    return interval(float(iqm(ours[None]) - iqm(theirs[None])), resampled)


def _draws(count: int) -> NDArray[np.int64]:
    return np.random.default_rng(SEED).integers(count, size=(RESAMPLES, count))


def interval(value: float, resampled: Scores) -> str:
    low, high = np.quantile(resampled, [0.025, 0.975])
    return f"{value:.3f} [{low:.3f}, {high:.3f}]".replace("-", "−")


def marked(value: float, frame_caps: int) -> str:
    """Format a number, marked if the frame cap cut games that it is of."""
    return number(value) + " †" * (frame_caps > 0)


def number(value: float) -> str:
    text = f"{value:,.0f}" if abs(value) >= 100 else f"{value:.1f}"
    return text.replace("-", "−")


def draw(scores: list[GameScore], path: Path) -> None:
    """Draw the human-normalised scores of each game, the published next to ours."""
    figure, axes = plt.subplots(figsize=(max(6, 0.45 * len(scores) + 2), 4.2), layout="constrained")
    ours, theirs = normalised(scores)
    places = np.arange(len(scores))
    axes.plot(places, theirs, "s", color="C1", label="van Hasselt et al. (2019)")
    axes.plot(places, ours, "o", color="C0", label="here, seed 1")
    axes.set_xticks(places, [score.game for score in scores], rotation=60, ha="right")
    axes.set_yscale("symlog", linthresh=0.1)
    axes.set_yticks([-0.1, 0, 0.05, 0.1, 0.2, 0.5, 1, 2])
    axes.yaxis.set_major_formatter("{x:g}")
    lowest, highest = min(*ours, *theirs), max(*ours, *theirs)
    axes.set_ylim(min(0.0, 1.3 * lowest), 1.3 * highest)
    axes.set_ylabel("human-normalised score")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=110, metadata={"Software": None})
    plt.close(figure)


if __name__ == "__main__":
    main()
