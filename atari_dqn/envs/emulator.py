"""What an environment needs of a game."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from jaxtyping import UInt8

from atari_dqn.types import StateDict

NOOP = 0
"""The action index that every game gives to doing nothing."""


class Emulator(Protocol):
    """One game, advanced a frame at a time; knows nothing of skips, stickiness or caps."""

    screen_shape: tuple[int, int]
    greys: UInt8[np.ndarray, "256"]
    """The grey of each colour number; the same for all emulators of a game."""

    def reset(self, episode_seed: int) -> None:
        """Begin a new game; `episode_seed` decides what chance there is in it."""
        ...

    def act(self, action: int) -> float:
        """Play one frame with the action of that index and return its reward."""
        ...

    def game_over(self) -> bool:
        """Return whether the game has ended."""
        ...

    def lives(self) -> int:
        """Return the lives left; 0 for a game without any."""
        ...

    def colours(self, screen: UInt8[np.ndarray, "H W"]) -> None:
        """Write the screen as it is now, in colour numbers, into `screen`."""
        ...

    def rgb(self) -> UInt8[np.ndarray, "H W 3"]:
        """Return a copy of the screen as it is now, in colour."""
        ...

    def state_dict(self) -> StateDict:
        """Return the game's state."""
        ...

    def load_state_dict(self, state: StateDict) -> None:
        """Take over a state of the same game."""
        ...
