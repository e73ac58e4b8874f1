"""Find tables of a run that cannot be read, which would be shown as tables without rows."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from atari_dqn.errors import DamagedError
from atari_dqn.files.atomic import open_regular
from atari_dqn.run.archive.archive import is_imported
from atari_dqn.run.tailing.shown_progress import shown_progress
from atari_dqn.run.tailing.status import RunStatus
from atari_dqn.telemetry.columns import FORMER_NAMES, TABLES, column_names
from atari_dqn.telemetry.events import Notice

_NEEDED = ("eval_log", "update_log", "throughput_log")
"""The tables that every run has, imports included."""
_MISSING = "missing"
_MOST_HEADER_BYTES = 2**16


def log_damage(status: RunStatus) -> str:
    """Describe the damaged tables of a run; empty if there are none, or if the run has not begun."""
    if status.state == "new":  # creates its tables
        return ""
    # a table with a row that was read has a whole header
    faults = {name: _fault(status.run, name) for name in _NEEDED if name not in status.latest}
    return ", ".join(f"{name}.csv: {fault}" for name, fault in faults.items() if fault)


def notice_of_damage(status: RunStatus, damage: str) -> Notice:
    """Make a notice of damaged tables, for views of the run."""
    return Notice(
        kind="damaged log",
        step=int(status.latest.get("update_log", {}).get("step", 0)),
        env_frames=shown_progress(status).frames,
        message=f"{damage}; {log_remedy(status.run)}",
    )


def log_remedy(run: Path) -> str:
    """Say what to do about damaged tables, in the words of `dqn resume`."""
    if is_imported(run):
        return "import its archive again, or first export it again"
    command = f"dqn resume {shlex.quote(str(run))} --set-aside-damaged-logs"
    return f"restore it, or `{command}` moves it to set_aside/ and continues with a new one"


@contextmanager
def suggesting_log_remedy(run: Path) -> Iterator[None]:
    """Add to a `DamagedError` of the block what to do, if the header of a table is damaged."""
    try:
        yield
    except DamagedError as error:
        # some tables are only of some agents, so that a missing one is no damage here
        if {_fault(run, name) for name in TABLES} <= {"", _MISSING}:
            raise
        raise DamagedError(f"{error}\n{log_remedy(run)}") from error


def _fault(run: Path, table: str) -> str:
    """Describe what is wrong with the header of a table; empty if it is whole."""
    try:
        with open_regular(run / f"{table}.csv") as file:
            header = file.readline(_MOST_HEADER_BYTES).decode(errors="replace")
    except FileNotFoundError:
        return _MISSING
    except OSError as error:
        return (error.strerror or str(error)).lower()
    found = {FORMER_NAMES.get(name, name) for name in header.removesuffix("\n").split(",")}
    is_whole = header.endswith("\n") and found >= set(column_names(table))
    return "" if is_whole else "its header is cut or damaged"
