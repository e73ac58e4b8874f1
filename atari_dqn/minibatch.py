"""The minibatch of transitions that a learner gets from a replay.

B minibatch, S stacked frames, H×W one frame.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch
from jaxtyping import Float, Int64, UInt8
from torch import Tensor

Frames = UInt8[Tensor, "B S H W"] | Float[Tensor, "B S H W"]
"""Pixels from 0 to 255: bytes as stored in the replay, or floats after an augmentation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Minibatch:
    """Transitions over n steps, or fewer where an episode ended inside the window."""

    s_tm1: Frames
    """Stacked frames on which the action was selected."""
    a_tm1: Int64[Tensor, "B"]
    """The action."""
    r_t: Float[Tensor, "B"]
    """Σ γⁱ r over the window, of clipped rewards."""
    discount_t: Float[Tensor, "B"]
    """γᵐ times the window's step discounts: 0 if there is no bootstrap value."""
    s_t: Frames
    """Stacked frames m steps later; meaningless where `discount_t` is 0."""
    weight: Float[Tensor, "B"]
    """Importance weight of each transition's loss; 1 under uniform sampling."""
    index: Int64[Tensor, "B"]
    """Index in the replay at which each transition begins."""

    def to(self, device: torch.device) -> Minibatch:
        """Copy the minibatch to `device`; return itself if it is there already."""
        if self.s_tm1.device == device:
            return self
        copied = {field.name: getattr(self, field.name).to(device) for field in fields(self)}
        return Minibatch(**copied)

    def split(self, parts: int) -> tuple[Minibatch, ...]:
        """Split into equal parts, which are views in order. B is a multiple of `parts`."""
        if parts == 1:
            return (self,)
        columns = {field.name: getattr(self, field.name).chunk(parts) for field in fields(self)}
        return tuple(
            Minibatch(**dict(zip(columns, values, strict=True)))
            for values in zip(*columns.values(), strict=True)
        )
