"""Several runs as a table, one a line: 80 columns are enough."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from atari_dqn.following.status import RunStatus
from atari_dqn.human import count, duration, score
from atari_dqn.reference.caps import MARK

_NAME_COLUMNS = 22
_STYLES = {"running": "green", "halted": "bold red", "silent": "yellow", "interrupted": "yellow"}


def summary_table(runs: Mapping[Path, RunStatus | str]) -> Group:
    """Return a line for each run, and below why those that cannot be read cannot."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("run", overflow="ellipsis", no_wrap=True, max_width=_NAME_COLUMNS)
    for title in ("state", "done", "left", "f/s", "rolling", "last eval", "best"):
        table.add_column(title, justify="left" if title == "state" else "right", no_wrap=True, min_width=4)
    for path, status in runs.items():
        table.add_row(*(_line(path, status) if isinstance(status, RunStatus) else _unreadable(path)))
    reasons = [Text(status, "red") for status in runs.values() if isinstance(status, str)]
    return Group(table, *reasons)


def _line(path: Path, status: RunStatus) -> list[Text | str]:
    alarm = " ▲" if status.alarms else ""
    left = status.seconds_left if status.state == "running" else math.nan
    rolling = status.latest.get("update_log", {}).get("rolling_return", math.nan)
    evaluation = status.latest.get("eval_log", {})
    mark = MARK if evaluation.get("frame_caps") else ""
    return [
        Text(name_of(path)),
        Text(status.state + alarm, _STYLES.get(status.state, "")),
        f"{status.share:.0%}",
        "-" if math.isnan(left) else duration(left),
        count(status.frames_per_second),
        score(float(rolling)),
        score(float(evaluation.get("mean_return", math.nan))) + mark,
        score(status.best_return),
    ]


def _unreadable(path: Path) -> list[Text | str]:
    return [Text(name_of(path)), Text("unreadable", "red")]


def name_of(path: Path) -> str:
    """Return a run's name: its folder's, also for `.`."""
    return path.resolve().name
