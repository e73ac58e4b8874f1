"""What a sampler is: it knows which cells hold a whole transition, and chooses among them.

Cells enter and leave on the host, between updates. `prepare` then brings up to date what lies on the device,
counts and exponents included. What comes after it, `draw` and `update`, has fixed shapes, reads no number of
the host's and waits for none of the device's: it can be captured in a CUDA graph and played again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor

from atari_dqn.types import StateDict


class Sampler(ABC):
    """Chooses cells. Cells enter, and later leave, in the order they were played."""

    def __init__(self, *, batch_size: int, seed: int, device: torch.device) -> None:
        self.batch_size, self.device = batch_size, device
        self.count = 0
        """Cells that can be drawn."""
        self.generator = torch.Generator(device=device).manual_seed(seed)

    @abstractmethod
    def add(self, cells: Int64[Tensor, "n"]) -> None:
        """Take in cells, given on the host, whose n-step window is complete."""

    @abstractmethod
    def drop(self, cells: Int64[Tensor, "n"]) -> None:
        """Let go of the cells that entered first: their frames are about to be overwritten."""

    def prepare(self, env_frames: int) -> None:
        """Get ready for draws at this point of the run, after cells entered or left."""
        assert self.count > 0, "nothing to draw from"
        self._bring_up_to_date(env_frames)

    def draw(self) -> tuple[Int64[Tensor, "B"], Float[Tensor, "B"]]:
        """Return a minibatch's cells and their importance weights."""
        unit = torch.rand(
            1, self.batch_size, generator=self.generator, dtype=torch.float64, device=self.device
        )
        cells, weights = self.chosen(unit)
        return cells[0], weights[0]

    @abstractmethod
    def chosen(self, unit: Float64[Tensor, "M B"]) -> tuple[Int64[Tensor, "M B"], Float[Tensor, "M B"]]:
        """Return M minibatches' cells and weights as `draw` does, from the caller's numbers in [0, 1).

        The sampler's own stream does not move.
        """

    @abstractmethod
    def update(self, cells: Int64[Tensor, "B"], error: Float[Tensor, "B"]) -> None:
        """Learn how wrong the values of drawn cells were."""

    @abstractmethod
    def mutated_tensors(self) -> list[Tensor]:
        """Return the tensors that `draw` and `update` change."""

    @abstractmethod
    def listed(self) -> Int64[Tensor, "n"]:
        """Return every cell that can be drawn, for checks and diagnostics."""

    @abstractmethod
    def priorities(self) -> Float64[Tensor, "n"]:
        """Return what each listed cell's probability is proportional to, in the order of `listed`."""

    @abstractmethod
    def beta_at(self, env_frames: int) -> float:
        """Return the exponent of the importance weights at this point of the run."""

    @abstractmethod
    def state_dict(self) -> StateDict:
        """Return what it knows, and its random stream."""

    @abstractmethod
    def load_state_dict(self, state: StateDict) -> None:
        """Take over what `state_dict` returned."""

    @abstractmethod
    def _bring_up_to_date(self, env_frames: int) -> None:
        """Put on the device what the next draws read."""
