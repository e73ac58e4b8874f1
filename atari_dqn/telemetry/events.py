"""What happens in a run, as typed values. The loop yields them; logs, views, gates and sinks consume them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

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


GateState = Literal["ok", "watching", "warned", "tripped"]
"""`watching`: wrong, but not for long enough; `warned`: the run goes on; `tripped`: the run is halted."""

GATES = {
    "loss": "loss and Q are finite",
    "gradients": "gradients are finite",
    "grad_norm": "the gradient's norm",
    "q_bound": "Q against the most that a return can be",
    "evaluations": "full evaluations against the best",
    "actions": "the share of one action among the greedy ones",
    "dead_units": "the share of hidden units that are always 0",
    "priorities": "the share of the replay that sampling amounts to",
    "throughput": "updates a second against the run's median",
    "disk": "free space for the run",
}
"""Every failure gate and what it looks at. The first two halt a run, the others warn."""


@dataclass(frozen=True, kw_only=True)
class GateChanged:
    """A failure gate came into another state: a line of events.jsonl."""

    gate: str
    """One of `GATES`."""
    state: GateState
    step: int
    env_frames: int
    message: str
    """A sentence for people."""
    value: float
    """What was measured; `threshold` is what it must not pass."""
    threshold: float


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How far a run is inside an activity that holds training up, such as an evaluation."""

    activity: str
    done: int
    total: int


class Counts(Protocol):
    """A run's counters (`clock.Clock`), which move with every iteration."""

    @property
    def env_frames(self) -> int:
        """Emulator frames played so far."""
        ...

    @property
    def filling(self) -> bool:
        """Whether the replay is filling, and nothing is learned yet."""
        ...


@dataclass(frozen=True, kw_only=True)
class Counting:
    """A run's iterations begin. A view reads the counters whenever it draws: no event is sent for them."""

    counts: Counts


Event = Row | Notice | GateChanged | Progress | Counting


class Notify(Protocol):
    """Reports what happened once to every sink."""

    def __call__(self, kind: str, message: str, **data: object) -> None:
        """Report a notice of a kind, with a sentence for people and its data."""
        ...


class Sink(Protocol):
    """A consumer of events. Every sink gets every event."""

    def handle(self, event: Event) -> None:
        """Take one event; must not change it, nor anything of the run."""
        ...

    def close(self) -> None:
        """Flush and let go of files."""
        ...
