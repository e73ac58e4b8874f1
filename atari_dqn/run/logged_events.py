"""Read the event log of a run, for decisions on how it resumes or is verified."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from atari_dqn.files.atomic import is_file, open_regular, reading
from atari_dqn.files.documents import Count


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
