"""Compute the differences between two specs."""

from __future__ import annotations

from dataclasses import dataclass

from atari_dqn.spec.keys import KEYS, Scalar, flatten
from atari_dqn.spec.schema import Spec


@dataclass(frozen=True)
class Difference:
    """A key in which two specs differ."""

    key: str
    """The key, dotted."""
    left: Scalar | None
    """The value in the first spec; None if the key does not apply to it."""
    right: Scalar | None
    """The value in the second spec; None if the key does not apply to it."""


def diff_specs(a: Spec, b: Spec) -> tuple[Difference, ...]:
    """Return the keys with different values, and those of only one of the specs, in the schema's order."""
    left, right = flatten(a), flatten(b)
    return tuple(
        Difference(key, left.get(key), right.get(key)) for key in KEYS if left.get(key) != right.get(key)
    )
