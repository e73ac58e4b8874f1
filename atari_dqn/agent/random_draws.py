"""Random numbers of networks: drawn when they are asked for, or ahead of the work that asks for them.

Compiled work is a function of tensors: it can hold no generator, so its numbers are drawn before it begins.
They are the same numbers either way, taken from the stream in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import torch
from torch import Tensor

_KINDS: dict[str, Callable[..., Tensor]] = {"normal": torch.randn, "uniform": torch.rand}


class Wanted(NamedTuple):
    """One draw: numbers of a kind, `normal` from N(0, 1) or `uniform` from [0, 1)."""

    kind: str
    shape: tuple[int, ...]

    def drawn(self, generator: torch.Generator) -> Tensor:
        """Draw them from a stream, on its device."""
        return _KINDS[self.kind](*self.shape, generator=generator, device=generator.device)


class Rehearsal:
    """Notes what work asks for, and draws nothing."""

    def __init__(self, device: torch.device) -> None:
        self.wanted: list[Wanted] = []
        self._device = device

    def draw(self, wanted: Wanted) -> Tensor:
        """Note the draw; return zeros in its place."""
        self.wanted.append(wanted)
        return torch.zeros(wanted.shape, device=self._device)


class DrawnAhead:
    """Gives out numbers that were drawn before, in order."""

    def __init__(self, numbers: Iterable[Tensor]) -> None:
        self._numbers = list(numbers)
        self._given = 0

    @property
    def left(self) -> int:
        """How many draws were not asked for yet."""
        return len(self._numbers) - self._given

    def draw(self, wanted: Wanted) -> Tensor:
        """Return the next numbers."""
        numbers = self._numbers[self._given]
        assert tuple(numbers.shape) == wanted.shape, "the work asks for other numbers than at its rehearsal"
        self._given += 1
        return numbers


Rng = torch.Generator | Rehearsal | DrawnAhead
"""Where random numbers come from."""


def normal(rng: Rng, *shape: int) -> Tensor:
    """Return numbers from N(0, 1)."""
    return _draw(rng, Wanted("normal", shape))


def uniform(rng: Rng, *shape: int) -> Tensor:
    """Return numbers from [0, 1)."""
    return _draw(rng, Wanted("uniform", shape))


def _draw(rng: Rng, wanted: Wanted) -> Tensor:
    return wanted.drawn(rng) if isinstance(rng, torch.Generator) else rng.draw(wanted)
