"""Reading a run's events back from events.jsonl, by what decides how a run goes on or is compared."""

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
    """Return the events of a log, oldest first; none where there is no file.

    A line that a crash of the machine has torn, or that is damaged otherwise, is left out.
    """
    if not is_file(path):
        return []
    with reading(path), open_regular(path) as file:
        events = map(_event, file)
        return [event for event in events if event is not None]


def _event(line: bytes) -> LoggedEvent | None:
    try:
        return msgspec.json.decode(line, type=LoggedEvent)
    except (ValueError, RecursionError):
        return None
