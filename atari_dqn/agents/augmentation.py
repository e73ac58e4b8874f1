"""Random shifts and brightness of stacked frames. Kostrikov et al. (2020), Schwarzer et al. (2021).

B batch, S stacked frames, H×W one frame.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from atari_dqn.minibatch import Minibatch

Augment = Callable[[Minibatch, torch.Generator], Minibatch]
"""Returns the minibatch that is learned from in place of the one that was sampled."""


def unchanged(batch: Minibatch, generator: torch.Generator) -> Minibatch:
    """Return the minibatch itself."""
    del generator
    return batch


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomShifts:
    """Shifts every stack by up to `shift_pixels` each way and changes its brightness, all its frames alike.

    The two states of a transition are changed apart. Actions are chosen on frames as they are.
    """

    shift_pixels: int
    intensity_scale: float

    def __call__(self, batch: Minibatch, generator: torch.Generator) -> Minibatch:
        """Return the minibatch with both states changed."""
        return replace(
            batch, s_tm1=self._changed(batch.s_tm1, generator), s_t=self._changed(batch.s_t, generator)
        )

    def _changed(
        self, frames: UInt8[Tensor, "B S H W"], generator: torch.Generator
    ) -> Float[Tensor, "B S H W"]:
        reach = self.shift_pixels
        shifts = torch.randint(-reach, reach + 1, (2, len(frames)), generator=generator, device=frames.device)
        normal = torch.randn(len(frames), 1, 1, 1, generator=generator, device=frames.device)
        return shifted(frames, shifts[0], shifts[1]) * (1 + self.intensity_scale * normal.clamp(-2.0, 2.0))


def shifted(frames: UInt8[Tensor, "B S H W"], down: Tensor, right: Tensor) -> UInt8[Tensor, "B S H W"]:
    """Return each stack moved by its own numbers of pixels; what comes in repeats the edge. i64[B] each."""
    _, _, height, width = frames.shape
    rows = _sources(height, down)[:, None, :, None].expand(-1, frames.shape[1], -1, width)
    columns = _sources(width, right)[:, None, None, :].expand_as(frames)
    return frames.gather(2, rows).gather(3, columns)


def _sources(size: int, shift: Tensor) -> Tensor:
    """Return which row each row comes from. i64[B, size]."""
    return (torch.arange(size, device=shift.device) - shift[:, None]).clamp(0, size - 1)
