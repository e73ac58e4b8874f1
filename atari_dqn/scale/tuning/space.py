"""The search space of a tune: a dimension for each key, some of them under conditions on others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from atari_dqn.formatting import setting
from atari_dqn.spec.keys import KEYS, Scalar

Kind = Literal["uniform", "integer", "log", "choice"]
Settings = Mapping[str, Scalar]
"""The values of a trial by dotted key; a key whose condition is not met is absent."""


@dataclass(frozen=True, kw_only=True)
class Dimension:
    """The values that a key may have."""

    key: str
    kind: Kind
    """`uniform`: a number of a range; `integer`: an integer of a range; `log`: a number of a range, or an
    integer for such a key, whose logarithm is uniform; `choice`: one of a list."""
    low: int | float = 0
    high: int | float = 0
    """The range, both ends included; not of a choice."""
    choices: tuple[Scalar, ...] = ()
    when: Mapping[str, tuple[Scalar, ...]]
    """Other keys of the space, each with the values of which it must have one for this key to apply."""

    @property
    def is_integer(self) -> bool:
        """Whether the values are integers of a range."""
        return self.kind != "choice" and KEYS[self.key].kind is int

    @property
    def extremes(self) -> tuple[Scalar, ...]:
        """Every choice, or both ends of the range."""
        return self.choices or (self.low, self.high)

    def contains(self, value: Scalar) -> bool:
        """Return whether the key can have a value."""
        if self.kind == "choice":
            return any(is_same(value, each) for each in self.choices)
        is_number = isinstance(value, int if self.is_integer else int | float)
        return is_number and not isinstance(value, bool | str) and self.low <= value <= self.high

    def applies(self, settings: Settings) -> bool:
        """Return whether the conditions are met by the values of the keys before this one."""
        return all(
            key in settings and any(is_same(settings[key], each) for each in allowed)
            for key, allowed in self.when.items()
        )

    def __str__(self) -> str:
        values = ", ".join(map(setting, self.choices)) if self.choices else f"{self.low} to {self.high}"
        conditions = "".join(
            f", when {key} is {' or '.join(map(setting, allowed))}" for key, allowed in self.when.items()
        )
        return f"{self.key}: {self.kind} {values}{conditions}"


def is_same(first: Scalar, second: Scalar) -> bool:
    """Return whether two values are equal in TOML, where `true` is not 1."""
    return first == second and isinstance(first, bool) == isinstance(second, bool)


def ordered(dimensions: Mapping[str, Dimension]) -> Iterator[Dimension]:
    """Yield the dimensions in order, each after those on which its conditions depend.

    Those whose conditions depend on each other in a circle are left out.
    """
    left, done = dict(dimensions), set[str]()
    while ready := [each for each in left.values() if done.issuperset(each.when)]:
        for each in ready:
            yield left.pop(each.key)
            done.add(each.key)
