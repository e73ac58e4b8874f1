"""Keep runs of PQN and of DQN on Pong, and make their page: scores and curves by frames and by minutes.

The tables are those of `gather.py`, in `pqn/` and, of runs that were trained at the same time on one machine,
in `pqn_minutes/`. A run is named after its spec and its seed. The page and the plot are made from these
tables, scores by frames also from the later runs of `pong_quick_runs/`:

python docs/results/keep_pqn.py outputs/pqn_pong_seed1                       keep runs for scores by frames
python docs/results/keep_pqn.py --by-minutes outputs/pqn_a outputs/quick_a   keep runs for scores by minutes
python docs/results/keep_pqn.py                                              make the page again
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import polars as pl
from gather import by_name, gather, origin
from keep import WINDOW_EPISODES

RESULTS = Path(__file__).parent
KEPT, EARLIER, PLOT, PAGE = Path("pqn"), Path("pong_quick_runs"), Path("pqn/curves.png"), Path("pqn.md")
BY_MINUTES = Path("pqn_minutes")
EARLIER_RUNS = ("seed1", "seed2", "seed3")
"""Those with the project's kernels; the others are of another machine and from before there were any."""
AGENTS = {"pqn": "PQN", "pong_quick": "`pong_quick`"}
SHOWN_EVALUATIONS = 4
MILLIONS, MINUTES = (1, 2, 3, 4, 5), (5, 10, 15)
LINE_STYLES = ("-", "--", ":", "-.")
COUNTS = {"resumes": "resumes", "busy_notices": "notices of a busy machine"}
"""What is said of a run if there was any: the column of runs.csv and its words."""
LATEST_GAME = {"env_frames": 50_000, "minutes": 0.4}
"""How long before a moment the last game of a run that came so far may have ended."""
TEXT = """\
# What do PQN and DQN learn of Pong in equal frames, and in equal minutes?

[PQN](../algorithms.md#pqn) has no replay and no target network, and plays Pong in 128 environments.
`pong_quick` is a DQN with Double, dueling, 5-step returns and prioritized replay, in 8. A score is the mean
of the last {window} training games that had ended. A dash: the run did not come so far, or no game
had ended.

{table}

{minutes}

![Return of training games by frames and by minutes]({plot})

By frames:

{runs}

By minutes:

{timed_runs}

- **Seeds of PQN differ**, and so do a run's evaluations from one to the next. The last ones by frames, one in
  half a million: {evaluations}.
- **Minutes** are those of the whole run, with its evaluations and checkpoints. The two runs by minutes were
  trained at the same time, each on one of the two cores of a machine. These can differ by up to 1.45 times;
  which was the faster one was not measured. The run of PQN was ended before its budget. The runs by frames
  are of other machines. On two cores: [costs of the agents](../algorithms.md#what-an-agent-costs).
- **The protocols differ in ε and in the cap of a game.** Both play whole games without sticky actions, scores
  are not clipped, and Pong has no lives that could end an episode. PQN's ε goes to 0.001 over a tenth of the
  run, that of `pong_quick` to 0.02 over 100,000 frames; in evaluations they are 0 and 0.05. A game has at
  most 108,000 frames with PQN and 18,000 with `pong_quick`.
- **The runs of `pong_quick` by frames were trained in bf16**, as its spec said then; today `auto` is fp32
  where there are kernels, as in the run by minutes.

**Not shown:** how far more than two seeds of PQN differ; other games; PQN with the 200 million frames of
its paper; DQN with the settings of its paper, which learns later than `pong_quick`
([a million frames](learning.md#what-do-three-algorithms-learn-of-pong-in-a-million-frames)).

Made from [runs.csv](pqn/runs.csv), [games.csv](pqn/games.csv) and [evaluations.csv](pqn/evaluations.csv), and
from the tables in [pong_quick_runs](pong_quick_runs/runs.csv), by

```
{commands}
python docs/results/keep_pqn.py RUN...
```

and, by minutes, from the tables in [pqn_minutes](pqn_minutes/runs.csv), by

```
{timed_commands}
python docs/results/keep_pqn.py --by-minutes RUN...
```
"""


@dataclass(frozen=True, kw_only=True)
class Run:
    """A kept run: how it was made, its training games and its evaluations."""

    made: dict[str, Any]
    games: pl.DataFrame
    evaluations: pl.DataFrame

    @property
    def agent(self) -> str:
        """The name of the run's spec."""
        return spec_and_seed(self.made["command"])[0]

    @property
    def label(self) -> str:
        """The agent and the seed, for display."""
        spec, seed = spec_and_seed(self.made["command"])
        return f"{AGENTS[spec]}, seed {seed}"


def spec_and_seed(command: str) -> tuple[str, int]:
    """Read the name of the spec and the seed from a recorded command; the shipped specs have seed 1."""
    seed = re.search(r"\bseed=(\d+)", command)
    return Path(command.split()[1]).stem, int(seed[1]) if seed else 1


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "runs", nargs="*", type=Path, help="finished run directories, of `pqn` or `pong_quick`"
    )
    parser.add_argument("--by-minutes", action="store_true", help="keep them for scores by minutes")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    if options.runs:
        folder = options.out / (BY_MINUTES if options.by_minutes else KEPT)
        gather(folder, by_name(options.runs, name_of))
    runs, timed = list(kept_runs(options.out)), list(timed_runs(options.out))
    draw(runs, timed, options.out / PLOT)
    (options.out / PAGE).write_text(page(runs, timed), encoding="utf-8")
    print(page(runs, timed))


def name_of(run: Path) -> str:
    """Name a run directory after its spec and its seed."""
    spec, seed = spec_and_seed(origin("", run)["command"])
    return f"{spec}_seed{seed}"


def kept_runs(results: Path) -> Iterator[Run]:
    """Yield the runs whose scores are shown by frames, PQN's first."""
    earlier = (run for run in runs_of(results / EARLIER) if run.made["run"] in EARLIER_RUNS)
    yield from by_agent([*runs_of(results / KEPT), *earlier])


def timed_runs(results: Path) -> Iterator[Run]:
    """Yield the runs whose scores are shown by minutes, PQN's first."""
    yield from by_agent(runs_of(results / BY_MINUTES))


def by_agent(runs: Iterable[Run]) -> list[Run]:
    return sorted(runs, key=lambda run: list(AGENTS).index(run.agent))


def runs_of(folder: Path) -> Iterator[Run]:
    """Yield the runs of a folder of `gather.py`."""
    runs, games, evaluations = (
        pl.read_csv(folder / f"{table}.csv", infer_schema_length=None)
        for table in ("runs", "games", "evaluations")
    )
    for made in runs.iter_rows(named=True):
        is_own = pl.col("run") == made["run"]
        yield Run(made=made, games=games.filter(is_own), evaluations=evaluations.filter(is_own))


def page(runs: list[Run], timed: list[Run]) -> str:
    """Make the page."""
    return filled(
        TEXT,
        runs,
        table=table(runs),
        plot=PLOT,
        minutes=minutes_table(timed),
        evaluations="; ".join(last_evaluations(run) for run in runs if run.agent == "pqn"),
        timed_runs=descriptions(timed),
        timed_commands=commands_of(timed),
    )


def filled(text: str, runs: list[Run], *, table: str, plot: Path, **more: str) -> str:
    """Fill a page's text with its table, its plot, how its runs were made, and `more`."""
    return text.format(
        window=WINDOW_EPISODES,
        table=table,
        plot=plot,
        runs=descriptions(runs),
        commands=commands_of(runs),
        **more,
    )


def descriptions(runs: Iterable[Run]) -> str:
    """Say how runs were made, a line for each."""
    return "\n".join(map(description, runs))


def commands_of(runs: list[Run]) -> str:
    """List the commands that make such runs."""
    return "\n".join(dict.fromkeys(map(command_of, runs)))


def command_of(run: Run) -> str:
    """Return the command that makes such a run, in a folder of the program's choice."""
    spec = run.made["command"].split()[1]
    command = "dqn " + run.made["command"].replace(spec, Path(spec).stem)
    command = re.sub(r" --run-dir \S+", "", command)
    return f"OMP_NUM_THREADS=1 {command}" if run.made["torch_threads"] == 1 else command


def table(runs: list[Run]) -> str:
    """Format the scores at equal frames."""
    return scores_table(runs, {f"{each}M": ("env_frames", 1e6 * each) for each in MILLIONS})


def minutes_table(runs: list[Run]) -> str:
    """Format the scores after equal minutes."""
    return scores_table(runs, {f"{each} min": ("minutes", each) for each in MINUTES})


def scores_table(runs: list[Run], moments: dict[str, tuple[str, float]]) -> str:
    """Format the scores at some moments, which are a column of the games and a value in it."""
    heads = ["after", *moments, "at the end"]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for run in runs:
        scores = [score_at(run.games, *moment) for moment in moments.values()]
        scores.append(run.games["episode_return"].tail(WINDOW_EPISODES).mean())
        lines.append(f"| {run.label} | {' | '.join(map(number, scores))} |")
    return "\n".join(lines)


def score_at(games: pl.DataFrame, clock: str, moment: float) -> float | None:
    """Return the mean of the last games that had ended; None if none had or the run did not come so far."""
    if games[clock].max() < moment - LATEST_GAME[clock]:
        return None
    return games.filter(pl.col(clock) <= moment)["episode_return"].tail(WINDOW_EPISODES).mean()


def number(score: float | None) -> str:
    return "–" if score is None else f"{round(score, 1) + 0.0:.1f}".replace("-", "−")


def description(run: Run) -> str:
    """Say how a run was made and how it ended."""
    made, games = run.made, run.games
    processor = f"{made['cpu_model']} ({made['cpu_flags'].split()[-1]})"
    facts = [
        f"{games['env_frames'].max():,} frames in {games['minutes'].max():.0f} minutes",
        f"{processor}, threads: {made['torch_threads']}, torch {made['torch']}",
        f"commit {made['commit']}, {made['started'][:10]}",
        *(f"{what}: {made[key]}" for key, what in COUNTS.items() if made.get(key)),
    ]
    if len(run.evaluations):
        last = run.evaluations.row(-1, named=True)
        mean, deviation = number(last["mean_return"]), number(last["std_return"])
        facts.append(f"last evaluation {mean} ± {deviation}, {last['episodes']} games")
    return f"- {run.label}: {'; '.join(facts)}"


def last_evaluations(run: Run) -> str:
    """List the means of the last evaluations of a run."""
    means = run.evaluations["mean_return"].tail(SHOWN_EVALUATIONS)
    return f"{run.label.rpartition(', ')[2]} {', '.join(map(number, means))}"


def draw(runs: list[Run], timed: list[Run], path: Path) -> None:
    """Draw the mean of the last training games by frames and by minutes: colors are agents, styles seeds."""
    figure, axes = plt.subplots(1, 2, figsize=(11, 4), sharey=True, layout="constrained")
    by_frames = (runs, "env_frames", 1e-6, "emulator frames (millions)")
    by_minutes = (timed, "minutes", 1.0, "minutes since the start, one core each")
    for place, (shown, clock, unit, label) in zip(axes, (by_frames, by_minutes), strict=True):
        styles = {agent: cycle(LINE_STYLES) for agent in AGENTS}
        for run in shown:
            color = f"C{list(AGENTS).index(run.agent)}"
            mean = run.games["episode_return"].rolling_mean(WINDOW_EPISODES)
            named = run.label.replace("`", "")
            style = next(styles[run.agent])
            place.plot(run.games[clock] * unit, mean, style, color=color, alpha=0.8, label=named)
        place.set_xlabel(label)
        place.grid(alpha=0.3)
    axes[0].set_ylabel(f"return of a game, mean of the last {WINDOW_EPISODES}")
    handles, names = axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=len(names), fontsize="small")
    figure.savefig(path, dpi=110, metadata={"Software": None})


if __name__ == "__main__":
    main()
