"""An emulator that calls a function after every frame, for videos."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import UInt8

from atari_dqn.envs.emulator import Emulator
from atari_dqn.types import StateDict

FrameCallback = Callable[[Emulator], None]
"""A function that reads an emulator's screen or state; it must not change them."""


class EmulatorWithCallback:
    """A wrapper of an emulator that calls a function with it after each reset and each frame."""

    def __init__(self, emulator: Emulator, callback: FrameCallback) -> None:
        self._emulator, self._callback = emulator, callback
        self.screen_shape, self.palette = emulator.screen_shape, emulator.palette

    def reset(self, episode_seed: int) -> None:
        """Begin a new game and call the callback."""
        self._emulator.reset(episode_seed)
        self._callback(self._emulator)

    def act(self, action: int) -> float:
        """Emulate one frame, call the callback, and return the reward."""
        reward = self._emulator.act(action)
        self._callback(self._emulator)
        return reward

    def game_over(self) -> bool:
        """Return whether the game has ended."""
        return self._emulator.game_over()

    def lives(self) -> int:
        """Return the lives left."""
        return self._emulator.lives()

    def write_screen(self, screen: UInt8[np.ndarray, "H W"]) -> None:
        """Write the current screen, as palette indices, into `screen`."""
        self._emulator.write_screen(screen)

    def rgb(self) -> UInt8[np.ndarray, "H W 3"]:
        """Return a copy of the current screen in RGB."""
        return self._emulator.rgb()

    def state_dict(self) -> StateDict:
        """Return the state of the game."""
        return self._emulator.state_dict()

    def load_state_dict(self, state: StateDict) -> None:
        """Restore a state of the same game."""
        self._emulator.load_state_dict(state)
