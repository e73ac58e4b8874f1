"""A tune as text: totals, the objective, and a line for each trial."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from atari_dqn.formatting import duration, measure, percentage, plural, printable, setting
from atari_dqn.scale.tuning.ranking import Standing
from atari_dqn.scale.tuning.scores import SCORES, objective_text
from atari_dqn.scale.tuning.study import IMPORTANCE, Trial
from atari_dqn.spec.keys import Scalar

_MOST_PROTOCOLS = 2
_INDENT = "  "
_HEADING = f"{'rank':>4} {'trial':>5} {'state':<9}{'score':>9}  values"


def heading(columns: int) -> str:
    """Return the titles of the columns of trials."""
    return _HEADING[:columns]


def trial_line(trial: Trial, standing: Standing, columns: int) -> str:
    """Format the line of a trial, shortened to a width.

    The score of a trial that has none yet is that of its latest step, in brackets.
    """
    if trial.state == "complete":
        score = measure(trial.value)
    else:
        score = f"({measure(trial.steps[max(trial.steps)])})" if trial.steps else "-"
    rank, first = standing.ranks.get(trial.number), standing.first[trial.number]
    repeats = rank is None and first != trial.number
    text = f"those of trial {first}" if repeats else settings_text(trial.settings, standing.record.tune.keys)
    line = f"{rank or '':>4} {trial.number:>5} {trial.state:<9}{score:>9}  {text}"
    return line if len(line) <= columns else f"{line[: columns - 1]}…"


def settings_text(settings: Mapping[str, Scalar], keys: Sequence[str]) -> str:
    """Format the values of a trial: `learning_rate 0.000312, n_step 3`."""
    return ", ".join(f"{leaf(key, keys)} {value_text(settings[key])}" for key in keys if key in settings)


def value_text(value: Scalar) -> str:
    """Format a value of a key; a number of many digits is rounded to three."""
    return f"{value:.3g}" if isinstance(value, float) else setting(value)


def leaf(key: str, keys: Sequence[str]) -> str:
    """Return the last part of a key, or the whole key if another one has the same last part."""
    last = key.rpartition(".")[2]
    return last if sum(each.rpartition(".")[2] == last for each in keys) == 1 else key


def totals_line(standing: Standing) -> str:
    """Format the number of trials by state, the budget and the time on one line."""
    tune = standing.record.tune
    states = [trial.state for trial in standing.trials]
    counts = [
        f"{states.count(state)} {state}"
        for state in ("running", "complete", "pruned", "failed")
        if state in states
    ]
    limits = {"trial": tune.budget.trials, "hour": tune.budget.hours}
    budget = " and ".join(plural(limit, name) for name, limit in limits.items() if limit is not None)
    done = f"{', '.join(counts) or 'no trials'}, of a budget of {budget}"
    return f"{tune.name}: {done}; {duration(standing.seconds)} of work"


def objective_line(standing: Standing) -> str:
    """Describe the objective on one line."""
    tune = standing.record.tune
    return objective_text(tune.objective, len(tune.seeds), tune.games)


def ranked_lines(standing: Standing, columns: int, most: int | None = None) -> Iterator[str]:
    """Yield the lines of trials: those that run, the complete ones by rank, the others. At most `most`."""
    running = [trial for trial in standing.trials if trial.state == "running"]
    shown = {trial.number for trial in (*running, *standing.ranked)}
    others = [trial for trial in standing.trials if trial.number not in shown]
    trials = [*running, *standing.ranked, *sorted(others, key=lambda trial: trial.state)]
    for trial in trials[:most]:
        yield trial_line(trial, standing, columns)
    if most is not None and len(trials) > most:
        yield f"and {plural(len(trials) - most, 'trial')} more"


def status_lines(
    standing: Standing, protocols: Sequence[str], importance: Mapping[str, float], columns: int
) -> Iterator[str]:
    """Yield the whole outcome of a tune as text."""
    yield heading(columns)
    yield from ranked_lines(standing, columns)
    yield ""
    for trial in standing.trials:
        if trial.state == "failed" and standing.first[trial.number] == trial.number:
            yield f"trial {trial.number} failed: {printable(trial.reason)}"
    yield totals_line(standing)
    yield objective_line(standing)
    yield from (f"protocol: {line}" for line in protocols[:_MOST_PROTOCOLS])
    if len(protocols) > _MOST_PROTOCOLS:
        yield f"and {len(protocols) - _MOST_PROTOCOLS} protocols more, one for each game"
    keys = standing.record.tune.keys
    if importance:
        shares = ", ".join(
            f"{leaf(key, keys)} {percentage(share, decimals=0)}" for key, share in importance.items()
        )
        yield f"importance: {shares} ({IMPORTANCE})"


def unit_of(standing: Standing) -> str:
    """Return the unit of the objective."""
    return SCORES[standing.record.tune.objective.score].unit
