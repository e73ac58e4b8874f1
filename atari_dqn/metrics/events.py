"""What happens in a run, as typed values. The loop yields them; logs, views, gates and sinks consume them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

Value = float | int | str
"""One cell of a table; NaN is written as an empty cell."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """A finished row of one of the declared tables (`metrics.columns.TABLES`)."""

    table: str
    values: Mapping[str, Value]


@dataclass(frozen=True, kw_only=True)
class Notice:
    """What happened once: a line of events.jsonl. `kind` is a word, `message` a sentence for people."""

    kind: str
    step: int
    env_frames: int
    message: str
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How far a run is inside an activity that holds training up, such as an evaluation."""

    activity: str
    done: int
    total: int


Event = Row | Notice | Progress


class Sink(Protocol):
    """A consumer of events. Every sink gets every event."""

    def handle(self, event: Event) -> None:
        """Take one event; must not change it, nor anything of the run."""
        ...

    def close(self) -> None:
        """Flush and let go of files."""
        ...
