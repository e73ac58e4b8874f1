"""A rule on a combination of keys, or on one key of new runs alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from atari_dqn.spec.check import show
from atari_dqn.spec.keys import Values

SPARE_ROWS = 2
"""Time steps of an environment, besides those of a window, at which no transition starts.

They are the newest one, which is incomplete, and one reset.
"""


@dataclass(frozen=True)
class Rule:
    """A condition on the values of several keys, and the remedy where it does not hold."""

    keys: tuple[str, ...]
    holds: Callable[..., bool]
    """The condition, called with the keys' values in their order."""
    remedy: str
    applies_to_existing_runs: bool = True
    """Whether the spec of an existing run, which may be older than the rule, is refused as well."""

    def problem(self, values: Values) -> str | None:
        """Describe what is wrong with the first key; None if the rule holds or a key has no value."""
        if any(key not in values for key in self.keys):
            return None
        found = [values[key] for key in self.keys]
        if self.holds(*found):
            return None
        others = [f"{key} = {show(value)}" for key, value in zip(self.keys[1:], found[1:], strict=True)]
        together = f" with {' and '.join(others)}" if others else ""
        return f"found {show(found[0])}{together}; {self.remedy}"
