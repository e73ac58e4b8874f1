"""An emulator that is watched frame by frame."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import UInt8

from atari_dqn.envs.emulator import Emulator
from atari_dqn.types import StateDict

Camera = Callable[[Emulator], None]
"""Looks at an emulator; must not play it."""


class FilmedEmulator:
    """Plays as the emulator it holds, and shows it to a camera after its reset and after every frame."""

    def __init__(self, emulator: Emulator, camera: Camera) -> None:
        self._emulator, self._camera = emulator, camera
        self.screen_shape, self.greys = emulator.screen_shape, emulator.greys

    def reset(self, episode_seed: int) -> None:
        """Begin a new game and show its first screen."""
        self._emulator.reset(episode_seed)
        self._camera(self._emulator)

    def act(self, action: int) -> float:
        """Play one frame, show it, and return its reward."""
        reward = self._emulator.act(action)
        self._camera(self._emulator)
        return reward

    def game_over(self) -> bool:
        """Return whether the game has ended."""
        return self._emulator.game_over()

    def lives(self) -> int:
        """Return the lives left."""
        return self._emulator.lives()

    def colours(self, screen: UInt8[np.ndarray, "H W"]) -> None:
        """Write the screen in colour numbers."""
        self._emulator.colours(screen)

    def rgb(self) -> UInt8[np.ndarray, "H W 3"]:
        """Return a copy of the screen in colour."""
        return self._emulator.rgb()

    def state_dict(self) -> StateDict:
        """Return the game's state."""
        return self._emulator.state_dict()

    def load_state_dict(self, state: StateDict) -> None:
        """Take over a state of the same game."""
        self._emulator.load_state_dict(state)
