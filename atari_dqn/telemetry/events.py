"""The events of a run as typed values. The training loop yields them; logs, views and sinks consume them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

Value = float | int | str
"""One cell of a table; NaN is written as an empty cell."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """A finished row of one of the declared tables (`telemetry.columns.TABLES`)."""

    table: str
    values: Mapping[str, Value]


@dataclass(frozen=True, kw_only=True)
class Notice:
    """A single occurrence, one line of events.jsonl. `kind`: a word; `message`: a sentence for the user."""

    kind: str
    step: int
    env_frames: int
    message: str
    data: Mapping[str, Any] = field(default_factory=dict)


ACTORS = "actors"
"""The kind of the notices that report the state of all actors, one for each period of the log."""

ENDINGS = {
    "finished": "finished",
    "halted": "halted",
    "worker died": "halted",
    "interrupted": "interrupted",
    "failed": "failed",
}
"""How a run has ended, by the kind of the notice that says so."""

BEGINNINGS = ("started", "resumed")
"""The kinds of the notices with which a run begins and goes on."""

GateState = Literal["ok", "watching", "warned", "tripped"]
"""`watching`: beyond the threshold, but not for long enough; `warned`: the run continues; `tripped`: it
halts."""

GATES = {
    "loss": "loss and Q are finite",
    "gradients": "gradients are finite",
    "grad_norm": "the gradient's norm",
    "q_bound": "Q against the largest possible return",
    "evaluations": "full evaluations against the best",
    "actions": "the share of one action among the greedy ones",
    "dead_units": "the share of hidden units that are always 0",
    "priorities": "the effective sample size as a share of the replay",
    "throughput": "updates a second against the run's median",
    "disk": "free space for the run",
}
"""Every failure gate and the value that it checks. The first two halt a run, the others warn."""


@dataclass(frozen=True, kw_only=True)
class GateChanged:
    """A failure gate changed its state; one line of events.jsonl."""

    gate: str
    """One of `GATES`."""
    state: GateState
    step: int
    env_frames: int
    message: str
    """A sentence for the user."""
    value: float
    """The measured value; `threshold` is its limit."""
    threshold: float


@dataclass(frozen=True, kw_only=True)
class Progress:
    """Progress of an activity during which training pauses, such as an evaluation."""

    activity: str
    done: int
    total: int


class Counters(Protocol):
    """The counters of a run (`clock.Clock`), which change with every iteration."""

    @property
    def env_frames(self) -> int:
        """Emulator frames played so far."""
        ...

    @property
    def filling(self) -> bool:
        """Whether the replay is being prefilled, before the first update."""
        ...


@dataclass(frozen=True, kw_only=True)
class TrainingStarted:
    """The iterations of a run begin. Views read the counters when they draw; their changes are not events."""

    counters: Counters


Event = Row | Notice | GateChanged | Progress | TrainingStarted


class Notify(Protocol):
    """Reports a notice to every sink."""

    def __call__(self, kind: str, message: str, **data: object) -> None:
        """Report a notice with its kind, a sentence for the user and data."""
        ...


class Sink(Protocol):
    """A consumer of events. Every sink gets every event."""

    def handle(self, event: Event) -> None:
        """Process one event without changing it or the run."""
        ...

    def close(self) -> None:
        """Flush and close files."""
        ...
