"""Several runs as a table with one line per run, which fits into 80 columns."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from atari_dqn.formatting import count, duration, printable
from atari_dqn.run.log_damage import log_damage
from atari_dqn.run.tailing.isolation import Unreadable
from atari_dqn.run.tailing.shown_progress import shown_progress
from atari_dqn.run.tailing.status import RunStatus
from atari_dqn.view.names import distinct_names
from atari_dqn.view.scores import fitting_marked_score, fitting_score

_TITLES = ("state", "age", "done", "left", "f/s", "rolling", "last eval", "best")
_LEFT_OUT_FIRST = ("age", "rolling", "f/s", "left", "last eval", "done", "best")
"""Columns in the order in which they are left out where the terminal is too narrow for all."""
_NAME_COLUMNS = 14
_SCORE_COLUMNS = 6
_TABLE_LINES = 5
"""Lines of the table but the runs, and that of the cursor."""
_MOST_NOTES = 4
_ORDER = (
    "running", "halted", "failed", "unreadable", "silent", "stopped", "interrupted", "new", "finished",
    "imported",
)  # fmt: skip
"""States in the order in which a reader looks for them."""
_MIXED = "ε"
"""Mark of training returns that are a mix of ε."""
_STYLES = {
    "running": "green",
    "halted": "bold red",
    "failed": "bold red",
    "silent": "yellow",
    "stopped": "yellow",
    "interrupted": "yellow",
}
Runs = Mapping[Path, RunStatus | Unreadable]
Row = Mapping[str, Text | str]
"""The entries of a run by the title of their column."""


def summary_table(runs: Runs, *, columns: int, lines: int | None = None) -> Group:
    """Draw a table with a line for each run, and below it what cannot be read, with the reason.

    `lines`: the height of the terminal. If not all runs fit, they are drawn in the order of `_ORDER`, running
    and failed runs first, and the rest is counted.
    """
    notes = _notes(runs)
    if lines is not None:
        notes = _shortest(notes)
        runs, left = _first(runs, max(2, lines - _TABLE_LINES - len(notes)))
        notes = [Text(f"and {left} more", "dim"), *notes] if left else notes
    return Group(_table(runs, columns), *notes)


def _first(runs: Runs, room: int) -> tuple[Runs, int]:
    """Select the runs that a reader looks for, as many as there is room for; count the others."""
    if len(runs) <= room:
        return runs, 0
    ordered = sorted(runs.items(), key=lambda item: _ORDER.index(_state(item[1])))
    return dict(ordered[: room - 1]), len(runs) - room + 1


def _state(status: RunStatus | Unreadable) -> str:
    return status.state if isinstance(status, RunStatus) else "unreadable"


def _shortest(notes: list[Text]) -> list[Text]:
    """Cut each note to a line, and their number to a few."""
    for note in notes:
        note.no_wrap, note.overflow = True, "ellipsis"
    left = len(notes) - _MOST_NOTES
    return [*notes[: _MOST_NOTES - 1], Text(f"and {left + 1} notes more", "red")] if left > 0 else notes


def _table(runs: Runs, columns: int) -> Table:
    rows = {
        path: _line(status) if isinstance(status, RunStatus) else {"state": Text("unreadable", "red")}
        for path, status in runs.items()
    }
    names, entries = run_names(runs), list(rows.values())
    widest = max(map(len, names.values()), default=0)
    titles = _fitting_titles(entries, columns - min(widest, _NAME_COLUMNS))
    short = distinct_names(names.values(), max(_NAME_COLUMNS, columns - _width(entries, titles)))
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=0)
    table.add_column("run", no_wrap=True, min_width=max(map(len, short.values()), default=0))
    for title in titles:
        table.add_column(title, justify="left" if title == "state" else "right", no_wrap=True)
    for path, row in rows.items():
        table.add_row(Text(short[names[path]]), *(row.get(title, "") for title in titles))
    return table


def _fitting_titles(rows: Sequence[Row], columns: int) -> list[str]:
    """Select the columns that fit into a width."""
    titles = list(_TITLES)
    for title in _LEFT_OUT_FIRST:
        if _width(rows, titles) <= columns:
            break
        titles.remove(title)
    return titles


def _width(rows: Sequence[Row], titles: Sequence[str]) -> int:
    """Compute the width of columns, each with a space in front, and of the table's edges."""
    return 2 + sum(1 + max(map(len, (title, *(row.get(title, "") for row in rows)))) for title in titles)


def run_names(paths: Iterable[Path]) -> dict[Path, str]:
    """Return the name of each run's folder; namesakes have the names of the folders above them in front."""
    own = {path: Path(os.path.realpath(path)).parts for path in paths}
    times = Counter(end for parts in {*own.values()} for end in _ends(parts))
    shortest = {path: next(end for end in _ends(parts) if times[end] == 1) for path, parts in own.items()}
    return {path: printable(str(Path(*end))) for path, end in shortest.items()}


def _ends(parts: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield the last parts of a path: one, two, and so on up to all of them."""
    return (tuple(parts[start:]) for start in reversed(range(len(parts))))


def _notes(runs: Runs) -> list[Text]:
    """Describe what cannot be read, with the reason, and the mark of returns that are no score."""
    faults = {
        path: "; ".join(filter(None, (status.fault, log_damage(status))))
        if isinstance(status, RunStatus)
        else status.reason
        for path, status in runs.items()
    }
    names = run_names(runs)
    notes = [Text(f"{names[path]}: {fault}", "red") for path, fault in faults.items() if fault]
    if any(isinstance(status, RunStatus) and status.identity.mixed_epsilon for status in runs.values()):
        notes.insert(0, Text(f"{_MIXED}: training returns of environments with different ε, no score"))
    return notes


def _line(status: RunStatus) -> Row:
    alert = " ▲" if status.alerts else ""
    left = status.seconds_left if status.state == "running" else math.nan
    rolling = status.latest.get("update_log", {}).get("rolling_return", math.nan)
    mark = f" {_MIXED}" if status.identity.mixed_epsilon else ""
    return {
        "state": Text(status.state + alert, _STYLES.get(status.state, "")),
        "age": duration(status.silent_seconds).split()[0],
        "done": f"{shown_progress(status).share:.0%}",
        "left": duration(left),
        "f/s": count(status.frames_per_second),
        "rolling": f"{fitting_score(float(rolling), _SCORE_COLUMNS)}{mark}",
        "last eval": fitting_marked_score(status.latest.get("eval_log", {}), _SCORE_COLUMNS),
        "best": fitting_marked_score(status.best_evaluation, _SCORE_COLUMNS),
    }


def name_of(path: Path) -> str:
    """Return the name of a run's folder without control characters; `.` is resolved."""
    return printable(os.path.basename(os.path.realpath(path)))  # noqa: PTH119 - links in a circle are names too
