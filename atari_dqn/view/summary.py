"""Several runs as a table with one line per run, which fits into 80 columns."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from pathlib import Path

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from atari_dqn.formatting import count, duration, printable
from atari_dqn.run.tailing.isolation import Unreadable
from atari_dqn.run.tailing.status import RunStatus
from atari_dqn.view.scores import fitting_marked_score, fitting_score

_TITLES = ("state", "age", "done", "left", "f/s", "rolling", "last eval", "best")
_NAME_COLUMNS = 14
_SCORE_COLUMNS = 6
_TABLE_LINES = 5
"""Lines of the table but the runs, and that of the cursor."""
_MOST_NOTES = 4
_ORDER = (
    "running", "halted", "failed", "unreadable", "silent", "stopped", "interrupted", "new", "finished"
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
        path: _line(status) if isinstance(status, RunStatus) else [Text("unreadable", "red")]
        for path, status in runs.items()
    }
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=0)
    widest = max(_NAME_COLUMNS, columns - _width(list(rows.values())))
    names = {path: shortened(name_of(path), widest) for path in runs}
    table.add_column("run", no_wrap=True, min_width=max(map(len, names.values()), default=0))
    for title in _TITLES:
        table.add_column(title, justify="left" if title == "state" else "right", no_wrap=True)
    for path, row in rows.items():
        table.add_row(Text(names[path]), *row)
    return table


def _width(rows: Sequence[Sequence[Text | str]]) -> int:
    """Compute the width of all columns but the name, each with a space in front, and of the table's edges."""
    entries = zip_longest(_TITLES, *rows, fillvalue="")
    return 2 + sum(1 + max(len(entry) for entry in column) for column in entries)


def _notes(runs: Runs) -> list[Text]:
    """Describe what cannot be read, with the reason, and the mark of returns that are no score."""
    faults = {
        path: status.fault if isinstance(status, RunStatus) else status.reason
        for path, status in runs.items()
    }
    notes = [Text(f"{name_of(path)}: {fault}", "red") for path, fault in faults.items() if fault]
    if any(isinstance(status, RunStatus) and status.identity.mixed_epsilon for status in runs.values()):
        notes.insert(0, Text(f"{_MIXED}: training returns of environments with different ε, no score"))
    return notes


def shortened(name: str, width: int) -> str:
    """Replace the middle of a name that is too long by an ellipsis; the seed is at its end."""
    if len(name) <= width:
        return name
    end = width // 2
    return f"{name[: width - end - 1]}…{name[-end:]}"


def _line(status: RunStatus) -> list[Text | str]:
    alert = " ▲" if status.alerts else ""
    left = status.seconds_left if status.state == "running" else math.nan
    rolling = status.latest.get("update_log", {}).get("rolling_return", math.nan)
    mark = f" {_MIXED}" if status.identity.mixed_epsilon else ""
    return [
        Text(status.state + alert, _STYLES.get(status.state, "")),
        duration(status.silent_seconds).split()[0],
        f"{status.share:.0%}",
        duration(left),
        count(status.frames_per_second),
        f"{fitting_score(float(rolling), _SCORE_COLUMNS)}{mark}",
        fitting_marked_score(status.latest.get("eval_log", {}), _SCORE_COLUMNS),
        fitting_marked_score(status.best_evaluation, _SCORE_COLUMNS),
    ]


def name_of(path: Path) -> str:
    """Return the name of a run's folder without control characters; `.` is resolved."""
    return printable(os.path.basename(os.path.realpath(path)))  # noqa: PTH119 - links in a circle are names too
