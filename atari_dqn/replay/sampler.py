"""What a sampler is: it knows which cells hold a whole transition, and chooses among them."""

from __future__ import annotations

from typing import Protocol

from jaxtyping import Float, Float64, Int64
from torch import Tensor

from atari_dqn.types import StateDict


class Sampler(Protocol):
    """Chooses cells. Cells enter, and later leave, in the order they were played."""

    batch_size: int

    @property
    def count(self) -> int:
        """Cells that can be drawn."""
        ...

    def add(self, cells: Int64[Tensor, "n"]) -> None:
        """Take in cells whose n-step window is complete."""
        ...

    def drop(self, cells: Int64[Tensor, "n"]) -> None:
        """Let go of the cells that entered first: their frames are about to be overwritten."""
        ...

    def draw(self, env_frames: int) -> tuple[Int64[Tensor, "B"], Float[Tensor, "B"]]:
        """Return a minibatch's cells and their importance weights, at this point of the run."""
        ...

    def choose(
        self, unit: Float64[Tensor, "M B"], env_frames: int
    ) -> tuple[Int64[Tensor, "M B"], Float[Tensor, "M B"]]:
        """Return M minibatches' cells and weights as `draw` does, from the caller's random numbers in [0, 1).

        The sampler's own stream does not move.
        """
        ...

    def update(self, cells: Int64[Tensor, "B"], error: Float[Tensor, "B"]) -> None:
        """Learn how wrong the values of drawn cells were."""
        ...

    def listed(self) -> Int64[Tensor, "n"]:
        """Return every cell that can be drawn, for checks and diagnostics."""
        ...

    def priorities(self) -> Float64[Tensor, "n"]:
        """Return what each listed cell's probability is proportional to, in the order of `listed`."""
        ...

    def beta_at(self, env_frames: int) -> float:
        """Return the exponent of the importance weights at this point of the run."""
        ...

    def state_dict(self) -> StateDict:
        """Return what it knows, and its random stream."""
        ...

    def load_state_dict(self, state: StateDict) -> None:
        """Take over what `state_dict` returned."""
        ...
