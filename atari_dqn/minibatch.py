"""The minibatches that a learner gets from a replay: of transitions, or of sequences.

B minibatch, S stacked frames, H×W one frame, K predicted steps. A sequence has L frames: those of its burn-in
and of T steps, and one more. With the stack of the first, it has F = L + S − 1. R numbers of a recurrent
state.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Self

import torch
from jaxtyping import Bool, Float, Int64, UInt8
from torch import Tensor

Frames = UInt8[Tensor, "B S H W"] | Float[Tensor, "B S H W"]
"""Pixels from 0 to 255: bytes as stored in the replay, or floats after an augmentation."""
NO_ACTION = -1
"""The last action at an episode's first frame, whose one-hot vector is zero."""


def to_device(values: Tensor, device: torch.device) -> Tensor:
    """Copy host values to a device, asynchronously; on a CPU return them as they are."""
    if device.type == "cpu":
        return values
    return values.pin_memory().to(device, non_blocking=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Columns with one entry for each sample."""

    weight: Float[Tensor, "B"]
    """Importance weight of each sample's loss; 1 under uniform sampling."""
    index: Int64[Tensor, "B"]
    """Index in the replay of the step at which each sample begins."""

    def to(self, device: torch.device) -> Self:
        """Copy the minibatch to `device`; return itself if it is there already."""
        if self.index.device == device:
            return self
        return type(self)(**{field.name: getattr(self, field.name).to(device) for field in fields(self)})

    def split(self, parts: int) -> tuple[Self, ...]:
        """Split into equal parts, which are views in order. B is a multiple of `parts`."""
        if parts == 1:
            return (self,)
        columns = {field.name: getattr(self, field.name).chunk(parts) for field in fields(self)}
        rows = zip(*columns.values(), strict=True)
        return tuple(type(self)(**dict(zip(columns, values, strict=True))) for values in rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Minibatch(Batch):
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


@dataclass(frozen=True, slots=True, kw_only=True)
class FutureBatch(Minibatch):
    """Transitions together with the K steps that follow them."""

    actions: Int64[Tensor, "B K"]
    """The actions of K steps; the first is `a_tm1`."""
    future: UInt8[Tensor, "B K S H W"] | Float[Tensor, "B K S H W"]
    """Stacked frames after each of these actions."""
    follows: Bool[Tensor, "B K"]
    """Whether each action, and every one before it, is of the episode and not terminal: whether the frames
    after it are predicted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceBatch(Batch):
    """Sequences of consecutive steps of one episode each; `docs/algorithms.md` draws one."""

    frames: UInt8[Tensor, "B F H W"]
    """Each frame once; zero outside of the episode. The stack of position p is `frames[:, p : p + S]`."""
    last_action: Int64[Tensor, "B L"]
    """The action that led to each frame; −1 for an episode's first frame, and outside of the episode."""
    last_reward: Float[Tensor, "B L"]
    """The clipped reward that came with each frame, otherwise 0."""
    state: Float[Tensor, "B R"]
    """Recurrent state before the first frame of the burn-in."""
    is_first: Bool[Tensor, "B"]
    """Whether the sequence begins its episode: then its state is zero, and its burn-in is outside of the
    episode."""
    mask: Bool[Tensor, "B T"]
    """False for steps after the end of the episode."""
    a_tm1: Int64[Tensor, "B T"]
    r_t: Float[Tensor, "B T"]
    discount_t: Float[Tensor, "B T"]
    """As in `Minibatch`, for windows of n steps that end with the sequence or its episode."""
    end_t: Int64[Tensor, "B T"]
    """Number of the frame, counted from the first step, that is the last one of each window."""
