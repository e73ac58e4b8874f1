"""Bounds and conditions of a key, given in the `Annotated` type of its field in the schema."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, Protocol, TypeVar

T = TypeVar("T")
Auto = Literal["auto"]
"""The value of a key that leaves its choice to the machine, until a run starts."""
AUTO: Final = "auto"


def decided(value: T | Auto) -> T:
    """Check that `machine.automatic` has replaced `auto` by a value, and return the value."""
    assert value != AUTO, "atari_dqn.machine.automatic.resolve_auto comes first"
    return value


def given(value: T | None) -> T:
    """Check that a key of a selected part has a value, and return it."""
    assert value is not None, "a chosen part has every key"
    return value


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
        return f"at most {self.high:,}" if isinstance(self.high, int) else f"at most {self.high:g}"


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

    def holds(self, found: object) -> bool:
        """Return whether the other key's value meets the condition."""
        return found == self.value

    @property
    def relation(self) -> str:
        """The relation of the other key to `value`, as a word or sign between them."""
        return "="

    @property
    def values(self) -> tuple[object, ...]:
        """The values of the condition, for display."""
        return (self.value,)


@dataclass(frozen=True)
class Among(When):
    """The condition that another key has one of several values."""

    value: tuple[object, ...]

    def holds(self, found: object) -> bool:
        """Return whether the other key's value meets the condition."""
        return found in self.value

    @property
    def values(self) -> tuple[object, ...]:
        """The values of the condition, for display."""
        return self.value


@dataclass(frozen=True)
class Unless(When):
    """The condition that another key has a value, and not this one."""

    def holds(self, found: object) -> bool:
        """Return whether the other key's value meets the condition."""
        return found is not None and found != self.value

    @property
    def relation(self) -> str:
        """The relation of the other key to `value`, as a word or sign between them."""
        return "other than"
