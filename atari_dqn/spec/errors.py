"""The error of an invalid spec, which lists all of its faults."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from atari_dqn.errors import UserError


@dataclass(frozen=True)
class Fault:
    """One thing wrong with a spec."""

    where: str
    """The file as the user named it, or `--set`."""
    key: str
    """The dotted key; empty for a fault of the whole file."""
    problem: str
    """What was found, what was expected and, unless it is obvious, the remedy."""

    def __str__(self) -> str:
        return ": ".join(part for part in (self.where, self.key, self.problem) if part)


class SpecError(UserError):
    """A spec is invalid. The message has one line for each fault."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        assert faults, "an error needs a fault"
        self.faults = tuple(faults)
        super().__init__("\n".join(str(fault) for fault in self.faults))

    def __reduce__(self) -> tuple[type[SpecError], tuple[tuple[Fault, ...]]]:
        """Make a copy, as another process gets it, from the faults."""
        return type(self), (self.faults,)
