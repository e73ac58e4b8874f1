"""What two specs differ in."""

from __future__ import annotations

from dataclasses import dataclass

from atari_dqn.spec.keys import KEYS, Scalar, flatten
from atari_dqn.spec.schema import Spec


@dataclass(frozen=True)
class Difference:
    """One key in which two specs differ."""

    key: str
    """Dotted."""
    left: Scalar | None
    """None if the key does not apply there."""
    right: Scalar | None


def diff_specs(a: Spec, b: Spec) -> tuple[Difference, ...]:
    """Return the differing keys only, in the schema's order, those that only one spec has among them."""
    left, right = flatten(a), flatten(b)
    return tuple(
        Difference(key, left.get(key), right.get(key)) for key in KEYS if left.get(key) != right.get(key)
    )
