"""Write the outcome of a tune to its folder: the best specs as TOML, the table of trials as CSV, the plot."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence

from atari_dqn.files.atomic import write_atomically
from atari_dqn.files.failures import writing
from atari_dqn.formatting import printable, setting
from atari_dqn.scale.tuning.folder import TuneFolder
from atari_dqn.scale.tuning.plot import encoded_plot
from atari_dqn.scale.tuning.ranking import Standing, protocol_lines
from atari_dqn.scale.tuning.study import Trial
from atari_dqn.scale.tuning.table import objective_line, settings_text, unit_of
from atari_dqn.scale.tuning.trials import trial_values
from atari_dqn.spec.keys import build
from atari_dqn.spec.loader import ResolvedSpec, deviating_keys
from atari_dqn.spec.render import resolved_toml

MOST_BEST = 3


def write_results(standing: Standing, folder: TuneFolder, importance: Mapping[str, float]) -> None:
    """Write all files of the outcome; those of an earlier outcome are replaced."""
    write_atomically(folder.table, table_csv(standing).encode())
    if not standing.ranked:
        return
    with writing(folder.best):
        folder.best.mkdir(exist_ok=True)
    protocols = protocol_lines(standing, folder)
    for rank, trial in enumerate(standing.ranked[:MOST_BEST], start=1):
        path = folder.best / f"{standing.record.tune.name}_best{rank}.toml"
        write_atomically(path, best_spec(standing, trial, rank, protocols).encode())
    write_atomically(folder.plot, encoded_plot(standing, importance))


def best_spec(standing: Standing, trial: Trial, rank: int, protocols: Sequence[str]) -> str:
    """Return the complete spec of a trial as TOML, on the first game and seed, for `dqn train`."""
    tune, unit = standing.record.tune, unit_of(standing)
    values = trial_values(standing.record, trial.settings)
    head = [
        f"# Rank {rank} of the tune {tune.name}: trial {trial.number}, {trial.value:.6g} ({unit}).",
        f"# The tune: {objective_line(standing)}.",
        f"# Its values: {settings_text(trial.settings, tune.keys)}.",
        *(f"# Protocol: {line}" for line in protocols),
        "# The best of many noisy scores is biased upwards: train other seeds before you report a score.",
    ]
    spec = ResolvedSpec(spec=build(values), name=tune.name, deviations=deviating_keys(values))
    return "\n".join(map(printable, head)) + "\n" + resolved_toml(spec)


def table_csv(standing: Standing) -> str:
    """Return all trials as CSV: a column for each key of the space, empty where it does not apply."""
    keys = standing.record.tune.keys
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["trial", "rank", "state", "score", "unit", *keys, "runs", "reason"])
    for trial in standing.trials:
        value = repr(trial.value) if trial.state == "complete" else ""
        cells = [_cell(trial.settings[key]) if key in trial.settings else "" for key in keys]
        runs = f"trial{standing.first[trial.number]:04}"
        row = [trial.number, standing.ranks.get(trial.number, ""), trial.state, value, unit_of(standing)]
        writer.writerow([*row, *cells, runs, printable(trial.reason)])
    return text.getvalue()


def _cell(value: object) -> str:
    return setting(value) if isinstance(value, bool) else str(value)
