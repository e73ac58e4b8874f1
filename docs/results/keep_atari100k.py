"""Keep the evidence of Track C: the tables of `gather.py`, a table by game and agent, and a plot.

Runs that are not finished, or whose budget is not that of the published columns, are named
and left out. The table and the plot are made anew from everything that was kept, so the script can be called
again as further runs finish. An agent is a spec `atari100k_AGENT`.

python docs/results/keep_atari100k.py --agent der outputs/atari100k_der_seed1 outputs/atari100k_der_seed2
python docs/results/keep_atari100k.py                                         the table and the plot alone
"""

from __future__ import annotations

import argparse
import csv
import math
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import polars as pl
from gather import final_of, gather
from matplotlib.artist import Artist
from matplotlib.axes import Axes

from atari_dqn.compare.comparison import compare
from atari_dqn.compare.reference.atari100k import COLUMNS, FRAMES, Sourced, columns_of
from atari_dqn.compare.reference.studies import DEFAULT_HUMAN_TABLE, human_random
from atari_dqn.compare.statistics import estimates, mean, median_run

FOLDER = Path(__file__).with_name("atari100k")
AGENTS = {"der": "DER", "der_dopamine": "DER, Dopamine's form", "drq_eps": "DrQ(ε)"}
SAME_AGENT = {
    "der": "der_vanhasselt2019",
    "der_dopamine": "der_agarwal2021",
    "drq_eps": "drq_eps_agarwal2021",
}
"""The published column that is of the same agent in the same form."""
MARKS: dict[Sourced, str] = {"run by run": "", "printed": "*", "recalled": "‡"}
STUDENT_T = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776, 6: 2.571, 7: 2.447, 8: 2.365, 9: 2.306, 10: 2.262}
"""97.5 % quantiles of Student's distribution with n − 1 degrees of freedom."""
INTERVAL_LABEL = "ours: 95 %, Student's t,\nin part outside the panel"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", nargs="*", type=Path, help="finished run directories")
    parser.add_argument("--agent", choices=AGENTS, help="whose runs they are")
    parser.add_argument("--out", type=Path, default=FOLDER)
    options = parser.parse_args()
    if options.runs and options.agent is None:
        parser.error("--agent says whose runs these are")
    if options.runs:
        keep(options.runs, options.agent, options.out)
    if not (options.out / "evaluations.csv").exists():
        parser.error(f"{options.out} has no finished run yet")
    rows = list(rows_of(options.out / "evaluations.csv"))
    rows.sort(key=lambda row: (str(row["game"]), list(AGENTS).index(str(row["agent"]))))
    write_csv(rows, options.out / "table.csv")
    (options.out / "table.md").write_text("\n".join(markdown(rows)) + "\n", encoding="utf-8")
    draw(rows, options.out / "scores.png")
    print((options.out / "table.md").read_text(encoding="utf-8"))


def keep(runs: list[Path], agent: str, out: Path) -> None:
    """Gather the finished runs, each by the name AGENT_GAME_seedN, and one complete spec of the agent."""
    found: dict[str, Path] = {}
    comparison = compare(runs, human_table=DEFAULT_HUMAN_TABLE)
    for warning in comparison.warnings:
        print(f"caveat: {warning}")
    for result in comparison.results:
        for run in result.group.runs:
            if run.seed in result.last.evaluations and result.last.env_frames == FRAMES:
                found[f"{agent}_{run.game}_seed{run.seed}"] = run.path
            else:
                print(f"{run.path}: not finished, or of another budget; left out")
    if found:
        gather(out, found)
        shutil.copy(next(iter(found.values())) / "spec.toml", out / f"{agent}.toml")


def rows_of(evaluations: Path) -> Iterator[dict[str, object]]:
    """Yield a row for each game of an agent: our seeds, their statistics, and the published columns."""
    final = final_of(pl.read_csv(evaluations))
    named = pl.concat([final, agent_and_game(final["run"])], how="horizontal")
    for (agent, game), seeds in named.group_by("agent", "game", maintain_order=True):
        yield row_of(str(agent), str(game), seeds.sort("seed"))


def agent_and_game(names: pl.Series) -> pl.DataFrame:
    """Return agent, game and seed of names AGENT_GAME_seedN; an agent's name may begin with another's."""
    agents = "|".join(sorted(AGENTS, key=len, reverse=True))
    pattern = rf"^(?<agent>{agents})_(?<game>\w+)_seed(?<seed>\d+)$"
    return names.str.extract_groups(pattern).struct.unnest().with_columns(pl.col("seed").cast(pl.Int64))


def row_of(agent: str, game: str, seeds: pl.DataFrame) -> dict[str, object]:
    scores, human = seeds["mean_return"].to_list(), human_random(game)
    statistics = estimates(np.array(scores)[:, None], {"mean": mean, "median": median_run})
    interval = statistics["mean"].interval
    low, high = (interval.low, interval.high) if interval else (math.nan, math.nan)
    t_low, t_high = student(scores)
    published = {column.agent: figure.mean for column, figure in columns_of(game)}
    target = published.get(SAME_AGENT[agent], math.nan)
    sourced = next(column.sourced for column in COLUMNS if column.agent == SAME_AGENT[agent])
    return {
        "game": game,
        "agent": agent,
        "env_frames": seeds["env_frames"].min(),
        "n": len(scores),
        "scores": " ".join(f"{seed}:{score:g}" for seed, score in zip(seeds["seed"], scores, strict=True)),
        "frame_caps": " ".join(map(str, seeds["frame_caps"])),
        "episodes": seeds["episodes"].min(),
        "mean": statistics["mean"].value,
        "median": statistics["median"].value,
        "human_normalised": human.normalised(statistics["mean"].value) if human else math.nan,
        "bootstrap_low": low,
        "bootstrap_high": high,
        "student_low": t_low,
        "student_high": t_high,
        **{column.agent: published.get(column.agent, math.nan) for column in COLUMNS},
        "target": SAME_AGENT[agent],
        "sourced": sourced,
        "in_bootstrap": inside(target, low, high),
        "in_student": inside(target, t_low, t_high),
    }


def student(values: list[float]) -> tuple[float, float]:
    """Return the 95 % interval of a mean by Student's t; NaN for one seed, or for more than the table has."""
    n = len(values)
    if n not in STUDENT_T:
        return math.nan, math.nan
    mean = sum(values) / n
    error = math.sqrt(sum((value - mean) ** 2 for value in values) / (n - 1) / n)
    return mean - STUDENT_T[n] * error, mean + STUDENT_T[n] * error


def inside(figure: float, low: float, high: float) -> str:
    if any(map(math.isnan, (figure, low, high))):
        return ""
    return "inside" if low <= figure <= high else "outside"


def write_csv(rows: list[dict[str, object]], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: cell(value) for name, value in row.items()} for row in rows)


def cell(value: object) -> object:
    if isinstance(value, float):
        return "" if math.isnan(value) else round(value, 4)
    return value


def markdown(rows: list[dict[str, object]]) -> Iterator[str]:
    """Yield the table for people, with what its marks mean."""
    columns = [f"{column.title}{MARKS[column.sourced]}" for column in COLUMNS]
    titles = [
        "game",
        "agent",
        "seeds",
        "mean",
        "median",
        "95 %, bootstrap",
        "95 %, Student",
        *columns,
        "in it",
    ]
    yield f"| {' | '.join(titles)} |"
    yield f"|{'---|' * len(titles)}"
    for row in rows:
        verdict = " / ".join(filter(None, (str(row["in_bootstrap"]), str(row["in_student"])))) or "–"
        cells = [
            str(row["game"]),
            AGENTS[str(row["agent"])],
            f"{row['n']}: {marked(row)}",
            number(row["mean"]),
            number(row["median"]),
            interval(row, "bootstrap"),
            interval(row, "student"),
            *(bold(number(row[column.agent]), of=column.agent == row["target"]) for column in COLUMNS),
            verdict + (MARKS["recalled"] if row["sourced"] == "recalled" and verdict != "–" else ""),
        ]
        yield f"| {' | '.join(cells)} |"
    yield ""
    yield (
        "`seed:score` is the mean of a seed's final games; †: the frame cap cut some. Bold: the published "
        "agent of the same form, which "
        "the last column is about: first by the bootstrap over seeds as `dqn compare` has it, which with few "
        "seeds is no wider than their range, then by Student's t. Columns are means over released runs, but "
        "for * (printed in papers) and ‡ (recalled from memory, confirmed in aggregate alone: nothing is "
        "claimed by it)."
    )


def marked(row: dict[str, object]) -> str:
    """Format the scores of the seeds, marked where the frame cap cut games."""
    each = zip(str(row["scores"]).split(), str(row["frame_caps"]).split(), strict=True)
    return " ".join(score + "†" * (caps != "0") for score, caps in each)


def interval(row: dict[str, object], kind: str) -> str:
    low, high = row[f"{kind}_low"], row[f"{kind}_high"]
    return "–" if number(low) == "–" else f"{number(low)} to {number(high)}"


def number(value: object) -> str:
    assert isinstance(value, float)
    if math.isnan(value):
        return "–"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.1f}"


def bold(text: str, *, of: bool) -> str:
    return f"**{text}**" if of and text != "–" else text


def draw(rows: list[dict[str, object]], path: Path) -> None:
    """Draw a panel a game: seeds, mean and interval of each agent, and a line for each published column."""
    games = list(dict.fromkeys(str(row["game"]) for row in rows))
    figure, panels = plt.subplots(
        1, len(games), figsize=(2.6 * len(games) + 3, 4.2), squeeze=False, layout="constrained"
    )
    for game, axes in zip(games, panels[0], strict=True):
        panel(axes, game, [row for row in rows if row["game"] == game])
    entries = legend_entries(panels[0])
    figure.legend(
        entries.values(), entries.keys(), loc="outside right center", fontsize="small", frameon=False
    )
    panels[0][0].set_ylabel("mean return of the final games")
    figure.suptitle("Atari 100k: ours and published")
    figure.savefig(path, dpi=110, metadata={"Software": None})


def legend_entries(panels: Iterable[Axes]) -> dict[str, Artist]:
    """Return each label of any panel once, with what it stands for: an agent of one seed has no interval."""
    drawn = [zip(*axes.get_legend_handles_labels(), strict=True) for axes in panels]
    return {label: handle for panel in drawn for handle, label in panel}


def limits_of(rows: list[dict[str, object]]) -> tuple[float, float]:
    """Return limits that hold every seed and published score of a game; an interval may go beyond them."""
    seeds = [float(each.partition(":")[2]) for row in rows for each in str(row["scores"]).split()]
    published = [float(str(row[column.agent])) for row in rows for column in COLUMNS]
    shown = [*seeds, *(figure for figure in published if not math.isnan(figure))]
    margin = 0.1 * (max(shown) - min(shown))
    return min(shown) - margin, max(shown) + margin


def panel(axes: Axes, game: str, rows: list[dict[str, object]]) -> None:
    for place, row in enumerate(rows):
        mean, low, high = (float(str(row[name])) for name in ("mean", "student_low", "student_high"))
        if not math.isnan(low):
            axes.errorbar(
                place, mean, [[mean - low], [high - mean]], fmt="none", capsize=5, color="tab:blue",
                label=INTERVAL_LABEL,
            )  # fmt: skip
        axes.plot(place, mean, "o", color="tab:blue", label="ours: mean")
        scores = [float(each.partition(":")[2]) for each in str(row["scores"]).split()]
        axes.plot([place] * len(scores), scores, "x", color="tab:orange", label="ours: a seed")
    styles = ["-", ":", "-", "-", "--", "--"]
    for at, (column, style) in enumerate(zip(COLUMNS, styles, strict=True)):
        figure = next((float(str(row[column.agent])) for row in rows), math.nan)
        axes.axhline(
            figure,
            linestyle=style,
            linewidth=1,
            color=f"C{at + 2}",
            label=f"{column.title} ({column.sourced})",
        )
    axes.set_ylim(*limits_of(rows))
    axes.set_title(game)
    axes.set_xticks(range(len(rows)), [AGENTS[str(row["agent"])] for row in rows], fontsize="x-small")
    axes.set_xlim(-0.6, len(rows) - 0.4)
    axes.grid(alpha=0.3, axis="y")


if __name__ == "__main__":
    main()
