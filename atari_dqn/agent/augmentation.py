"""Random shifts and brightness of stacked frames. Kostrikov et al. (2020), Schwarzer et al. (2021).

B batch, S stacked frames, H×W one frame.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import torch
from jaxtyping import Float, Int64, UInt8
from torch import Tensor

from atari_dqn.minibatch import Minibatch

M = TypeVar("M", bound=Minibatch)
Augment = Callable[[Any, torch.Generator], Any]
"""Transforms a sampled minibatch before the loss is computed."""


def not_augmented(batch: Any, _: torch.Generator) -> Any:
    """Return the minibatch as it is."""
    return batch


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomShifts:
    """Shifts every stack by up to `shift_pixels` in each direction and scales its brightness.

    All frames of a stack change in the same way, the two states of a transition in different ways.
    """

    shift_pixels: int
    intensity_scale: float

    def __call__(self, batch: M, generator: torch.Generator) -> M:
        """Augment both states of every transition."""
        return replace(
            batch, s_tm1=self._augmented(batch.s_tm1, generator), s_t=self._augmented(batch.s_t, generator)
        )

    def _augmented(
        self, frames: UInt8[Tensor, "B S H W"], generator: torch.Generator
    ) -> Float[Tensor, "B S H W"]:
        reach = self.shift_pixels
        shifts = torch.randint(-reach, reach + 1, (2, len(frames)), generator=generator, device=frames.device)
        normal = torch.randn(len(frames), 1, 1, 1, generator=generator, device=frames.device)
        brightness = 1 + self.intensity_scale * normal.clamp(-2.0, 2.0)
        return shifted(frames, shifts[0], shifts[1], reach=reach).float().mul_(brightness)


def shifted(
    frames: UInt8[Tensor, "B S H W"], down: Int64[Tensor, "B"], right: Int64[Tensor, "B"], *, reach: int
) -> UInt8[Tensor, "B S H W"]:
    """Shift each stack by its own numbers of pixels; pixels that move in repeat the edge.

    Shifts must lie within ± `reach`, or the window would reach into the next row. Rows are copied whole:

        a padded row     e e e e | a b c d … x y z | e e e e      e: an edge pixel, `reach` on each side
        shifted by 2         e e   a b c d … x                    a window of the padded row
    """
    batch, stack, height, width = frames.shape
    left_edge, right_edge = (edge.expand(-1, -1, -1, reach) for edge in (frames[..., :1], frames[..., -1:]))
    padded = torch.cat([left_edge, frames, right_edge], dim=3)
    source_rows = (torch.arange(height, device=down.device) - down[:, None]).clamp(0, height - 1)
    images = torch.arange(batch * stack, device=down.device).view(batch, stack, 1)
    row_starts = (images * height + source_rows[:, None]) * padded.shape[3]
    windows = padded.as_strided((padded.numel() - width + 1, width), (1, 1))
    return windows.index_select(0, (row_starts + (reach - right)[:, None, None]).flatten()).view_as(frames)
