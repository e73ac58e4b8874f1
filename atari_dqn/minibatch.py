"""The minibatch: what a replay hands to a learner.

B minibatch, S stacked frames, H×W one frame.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch
from jaxtyping import Float, Int64, UInt8
from torch import Tensor

Frames = UInt8[Tensor, "B S H W"] | Float[Tensor, "B S H W"]
"""Pixels from 0 to 255: bytes as a replay has them, or floats once they were changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Minibatch:
    """Transitions over n steps, or fewer where an episode ended inside the window."""

    s_tm1: Frames
    """Stacked frames the action was chosen on."""
    a_tm1: Int64[Tensor, "B"]
    """The action."""
    r_t: Float[Tensor, "B"]
    """Σ γⁱ r over the window, of clipped rewards."""
    discount_t: Float[Tensor, "B"]
    """γᵐ times the window's step discounts: 0 where there is nothing to bootstrap from."""
    s_t: Frames
    """Stacked frames m steps later; meaningless where `discount_t` is 0."""
    weight: Float[Tensor, "B"]
    """Importance weight of each transition's loss; 1 under uniform sampling."""
    index: Int64[Tensor, "B"]
    """Where in the replay each transition begins."""

    def to(self, device: torch.device) -> Minibatch:
        """Return the minibatch on `device`; itself if it is there."""
        if self.s_tm1.device == device:
            return self
        moved = {field.name: getattr(self, field.name).to(device) for field in fields(self)}
        return Minibatch(**moved)

    def split(self, parts: int) -> tuple[Minibatch, ...]:
        """Return equal parts, views in order. B is a multiple of `parts`."""
        if parts == 1:
            return (self,)
        columns = {field.name: getattr(self, field.name).chunk(parts) for field in fields(self)}
        return tuple(
            Minibatch(**dict(zip(columns, values, strict=True)))
            for values in zip(*columns.values(), strict=True)
        )
