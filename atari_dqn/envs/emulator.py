"""The interface of a game's emulator."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from jaxtyping import UInt8

from atari_dqn.types import StateDict

NOOP = 0
"""The index of the no-op action, the same in every game."""


class Emulator(Protocol):
    """A game emulated frame by frame, without frame skip, sticky actions or a maximum episode length."""

    screen_shape: tuple[int, int]
    """Height and width of the screen in pixels."""
    palette: UInt8[np.ndarray, "256"]
    """The grey level of each palette index; the same for all emulators of a game."""

    def reset(self, episode_seed: int) -> None:
        """Begin a new game; `episode_seed` seeds its randomness, if it has any."""
        ...

    def act(self, action: int) -> float:
        """Emulate one frame with the action of that index and return its reward."""
        ...

    def game_over(self) -> bool:
        """Return whether the game has ended."""
        ...

    def lives(self) -> int:
        """Return the lives left; 0 in a game without lives."""
        ...

    def write_screen(self, screen: UInt8[np.ndarray, "H W"]) -> None:
        """Write the current screen, as palette indices, into `screen`."""
        ...

    def rgb(self) -> UInt8[np.ndarray, "H W 3"]:
        """Return a copy of the current screen in RGB."""
        ...

    def state_dict(self) -> StateDict:
        """Return the state of the game."""
        ...

    def load_state_dict(self, state: StateDict) -> None:
        """Restore a state of the same game."""
        ...
