"""What a sampler is: it knows which cells hold a whole transition, and chooses among them."""

from __future__ import annotations

from typing import Protocol

from jaxtyping import Float, Int64
from torch import Tensor

from atari_dqn.types import StateDict


class Sampler(Protocol):
    """Chooses cells. Cells enter, and later leave, in the order they were played."""

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

    def update(self, cells: Int64[Tensor, "B"], abs_td_error: Float[Tensor, "B"]) -> None:
        """Learn how wrong the values of drawn cells were."""
        ...

    def listed(self) -> Int64[Tensor, "n"]:
        """Return every cell that can be drawn, for checks and diagnostics."""
        ...

    def state_dict(self) -> StateDict:
        """Return what it knows, and its random stream."""
        ...

    def load_state_dict(self, state: StateDict) -> None:
        """Take over what `state_dict` returned."""
        ...
