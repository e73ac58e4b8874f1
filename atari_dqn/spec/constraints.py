"""Bounds and conditions that a schema's fields carry in `Annotated`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


class Bound(Protocol):
    """A range of numbers; `str()` of it completes the phrase "expected a number …"."""

    def holds(self, value: float) -> bool:
        """Return whether `value` lies in the range. NaN lies in none."""
        ...


@dataclass(frozen=True)
class Extensible:
    """Besides its literals a key may name an entry point of this group, which another package installs."""

    group: str


@dataclass(frozen=True)
class AtLeast:
    """value ≥ low."""

    low: float

    def holds(self, value: float) -> bool:
        """Return whether `value` is `low` or more."""
        return value >= self.low

    def __str__(self) -> str:
        return f"at least {self.low}"


@dataclass(frozen=True)
class MoreThan:
    """value > low."""

    low: float

    def holds(self, value: float) -> bool:
        """Return whether `value` is more than `low`."""
        return value > self.low

    def __str__(self) -> str:
        return f"more than {self.low}"


@dataclass(frozen=True)
class AtMost:
    """value ≤ high."""

    high: float

    def holds(self, value: float) -> bool:
        """Return whether `value` is `high` or less."""
        return value <= self.high

    def __str__(self) -> str:
        return f"at most {self.high:g}"


@dataclass(frozen=True)
class Below:
    """value < high."""

    high: float

    def holds(self, value: float) -> bool:
        """Return whether `value` is below `high`."""
        return value < self.high

    def __str__(self) -> str:
        return f"below {self.high}"


@dataclass(frozen=True)
class Within:
    """low ≤ value ≤ high."""

    low: float
    high: float

    def holds(self, value: float) -> bool:
        """Return whether `value` lies between the two, both included."""
        return self.low <= value <= self.high

    def __str__(self) -> str:
        return f"from {self.low} to {self.high}"


@dataclass(frozen=True)
class When:
    """Required where the key at the dotted path `key` has `value`; elsewhere None, and an error to write.

    Of several, all must hold.
    """

    key: str
    value: object
