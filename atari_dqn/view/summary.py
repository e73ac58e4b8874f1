"""Several runs as a table with one line per run, which fits into 80 columns."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from atari_dqn.compare.reference.caps import marked_score
from atari_dqn.formatting import count, duration, printable, score
from atari_dqn.run.tailing.isolation import Unreadable
from atari_dqn.run.tailing.status import RunStatus

_OTHER_COLUMNS = 66
"""Width of all columns but the name."""
_NAME_COLUMNS = 14
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


def summary_table(runs: Mapping[Path, RunStatus | Unreadable], *, columns: int) -> Group:
    """Draw a line for each run, and below the table what cannot be read, with the reason."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    widest = max(_NAME_COLUMNS, columns - _OTHER_COLUMNS)
    table.add_column("run", no_wrap=True)
    table.add_column("state", no_wrap=True)
    for title in ("age", "done", "left", "f/s", "rolling", "last eval", "best"):
        table.add_column(title, justify="right", no_wrap=True, min_width=3)
    for path, status in runs.items():
        cells = _line(status) if isinstance(status, RunStatus) else [Text("unreadable", "red")]
        table.add_row(Text(shortened(name_of(path), widest)), *cells)
    faults = {
        path: status.fault if isinstance(status, RunStatus) else status.reason
        for path, status in runs.items()
    }
    notes = [Text(f"{name_of(path)}: {fault}", "red") for path, fault in faults.items() if fault]
    if any(isinstance(status, RunStatus) and status.identity.mixed_epsilon for status in runs.values()):
        notes.insert(0, Text(f"{_MIXED}: training returns of environments with different ε, no score"))
    return Group(table, *notes)


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
        f"{score(float(rolling))}{mark}",
        marked_score(status.latest.get("eval_log", {})),
        marked_score(status.best_evaluation),
    ]


def name_of(path: Path) -> str:
    """Return the name of a run's folder without control characters; `.` is resolved."""
    return printable(os.path.basename(os.path.realpath(path)))  # noqa: PTH119 - links in a circle are names too
