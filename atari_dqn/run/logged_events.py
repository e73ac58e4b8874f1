"""Read the event log of a run: how it ended, and for decisions on how it resumes or is verified."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec

from atari_dqn.files.atomic import is_file, open_regular
from atari_dqn.files.documents import Count
from atari_dqn.files.failures import reading
from atari_dqn.telemetry.events import BEGINNINGS, ENDINGS

_END_BYTES = 65_536
"""The end of a log that has its last beginning or ending."""


class LoggedEvent(msgspec.Struct, frozen=True):
    """A line of events.jsonl."""

    kind: str
    step: Count
    message: str = ""
    data: dict[str, Any] = {}


def logged_events(path: Path) -> list[LoggedEvent]:
    """Read the events of a log, oldest first; none without a file.

    Incomplete lines, which a crash of the machine leaves, and other damaged lines are left out.
    """
    if not is_file(path):
        return []
    with reading(path), open_regular(path) as file:
        events = map(_event, file)
        return [event for event in events if event is not None]


def last_ending(path: Path) -> str:
    """Return how the run of a log ended, a value of `ENDINGS`; empty if it goes on, or does not say so."""
    if not is_file(path):
        return ""
    with reading(path), open_regular(path) as file:
        file.seek(max(0, path.stat().st_size - _END_BYTES), os.SEEK_SET)
        kinds = [event.kind for event in map(_event, file.read().splitlines()) if event is not None]
    last = next((kind for kind in reversed(kinds) if kind in ENDINGS or kind in BEGINNINGS), "")
    return ENDINGS.get(last, "")


def current_budget(path: Path) -> int | None:
    """Return the budget in emulator frames that the log recorded last, at a resume; None without one."""
    for event in reversed(logged_events(path)):
        budget = event.data.get("total_frames")
        if event.kind in ("resumed", "extended") and type(budget) is int:
            return budget
    return None


def _event(line: bytes) -> LoggedEvent | None:
    try:
        return msgspec.json.decode(line, type=LoggedEvent)
    except (ValueError, RecursionError):
        return None
