"""Bounds and conditions of a key, given in the `Annotated` type of its field in the schema."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


class Bound(Protocol):
    """A range of numbers. Its `str()` continues the phrase "expected a number …"."""

    def holds(self, value: float) -> bool:
        """Return whether `value` is in the range; False for NaN."""
        ...


@dataclass(frozen=True)
class Extensible:
    """The key may also name an entry point of this group, which another package installs."""

    group: str


@dataclass(frozen=True)
class AtLeast:
    """The range value ≥ low."""

    low: float

    def holds(self, value: float) -> bool:
        """Return whether `value` ≥ `low`."""
        return value >= self.low

    def __str__(self) -> str:
        return f"at least {self.low}"


@dataclass(frozen=True)
class MoreThan:
    """The range value > low."""

    low: float

    def holds(self, value: float) -> bool:
        """Return whether `value` > `low`."""
        return value > self.low

    def __str__(self) -> str:
        return f"more than {self.low}"


@dataclass(frozen=True)
class AtMost:
    """The range value ≤ high."""

    high: float

    def holds(self, value: float) -> bool:
        """Return whether `value` ≤ `high`."""
        return value <= self.high

    def __str__(self) -> str:
        return f"at most {self.high:g}"


@dataclass(frozen=True)
class Below:
    """The range value < high."""

    high: float

    def holds(self, value: float) -> bool:
        """Return whether `value` < `high`."""
        return value < self.high

    def __str__(self) -> str:
        return f"below {self.high}"


@dataclass(frozen=True)
class Within:
    """The range low ≤ value ≤ high."""

    low: float
    high: float

    def holds(self, value: float) -> bool:
        """Return whether `low` ≤ `value` ≤ `high`."""
        return self.low <= value <= self.high

    def __str__(self) -> str:
        return f"from {self.low} to {self.high}"


@dataclass(frozen=True)
class When:
    """The condition that another key has a value.

    A key with conditions is required where all of them hold. Elsewhere it is None, and writing it is an
    error.
    """

    key: str
    """The other key, dotted."""
    value: object
