"""Catch: a toy game with the interface of an Atari emulator, for fast tests.

On a board of 24×24 squares a ball falls straight down, one square per frame, and a paddle of five squares
moves sideways, one square per frame. A caught ball has reward 1; a missed one has reward −1 and costs a life.
The game is over without lives, or after ten balls. With a frame skip of up to 5 every ball can be caught.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import UInt8

from atari_dqn.envs.palette import IDENTITY_PALETTE
from atari_dqn.envs.toy import ToyShard
from atari_dqn.rng import stream_seed
from atari_dqn.types import StateDict

BOARD_SIZE = 24
PADDLE_HALF_WIDTH = 2
LIVES = 3
BALLS = 10
ACTION_NAMES = ("noop", "right", "left")
_MOVES = (0, 1, -1)
_BRIGHT = 255


class CatchEmulator:
    """The game as an implementation of `Emulator`."""

    def __init__(self, size_pixels: int) -> None:
        self.screen_shape = (size_pixels, size_pixels)
        self.palette = IDENTITY_PALETTE
        self._edges = np.linspace(0, size_pixels, BOARD_SIZE + 1).round().astype(int).tolist()
        self._game_seed = 0
        self._balls = 0
        self._lives = LIVES
        self._paddle = self._row = self._column = 0
        self.reset(0)

    def reset(self, episode_seed: int) -> None:
        """Begin a new game; the seed determines the columns of the balls."""
        self._game_seed = episode_seed
        self._balls = 0
        self._lives = LIVES
        self._paddle = BOARD_SIZE // 2
        self._drop()

    def _drop(self) -> None:
        self._row = 0
        self._column = stream_seed(self._game_seed, "ball", self._balls) % BOARD_SIZE

    def act(self, action: int) -> float:
        """Move the paddle and the ball by one square; return ±1 when the ball reaches the bottom, else 0."""
        leftmost, rightmost = PADDLE_HALF_WIDTH, BOARD_SIZE - 1 - PADDLE_HALF_WIDTH
        self._paddle = min(max(self._paddle + _MOVES[action], leftmost), rightmost)
        self._row += 1
        return self._land() if self._row == BOARD_SIZE - 1 else 0.0

    def _land(self) -> float:
        caught = abs(self._column - self._paddle) <= PADDLE_HALF_WIDTH
        self._lives -= not caught
        self._balls += 1
        self._drop()
        return 1.0 if caught else -1.0

    def game_over(self) -> bool:
        """Return whether no life or no ball is left."""
        return self._lives == 0 or self._balls == BALLS

    def lives(self) -> int:
        """Return the lives left."""
        return self._lives

    def write_screen(self, screen: UInt8[np.ndarray, "H W"]) -> None:
        """Draw the ball and the paddle, white on black."""
        edges, row, column = self._edges, self._row, self._column
        screen.fill(0)
        screen[edges[row] : edges[row + 1], edges[column] : edges[column + 1]] = _BRIGHT
        left, right = self._paddle - PADDLE_HALF_WIDTH, self._paddle + PADDLE_HALF_WIDTH + 1
        screen[edges[-2] :, edges[left] : edges[right]] = _BRIGHT

    def rgb(self) -> UInt8[np.ndarray, "H W 3"]:
        """Return the screen in RGB, which is grey."""
        screen = np.zeros(self.screen_shape, np.uint8)
        self.write_screen(screen)
        return np.repeat(screen[:, :, None], 3, axis=2)

    def state_dict(self) -> StateDict:
        """Return the game's state."""
        return {
            "game_seed": self._game_seed,
            "balls": self._balls,
            "lives": self._lives,
            "paddle": self._paddle,
            "row": self._row,
            "column": self._column,
        }

    def load_state_dict(self, state: StateDict) -> None:
        """Restore a state; `ValueError` if no game can reach it."""
        limits = {"balls": BALLS, "lives": LIVES, "paddle": BOARD_SIZE - 1, "row": BOARD_SIZE - 2,
                  "column": BOARD_SIZE - 1}  # fmt: skip
        for name, most in limits.items():
            if not 0 <= state[name] <= most:
                raise ValueError(f"{name}: found {state[name]}, expected 0 to {most}")
        self._game_seed, self._balls, self._lives = state["game_seed"], state["balls"], state["lives"]
        self._paddle, self._row, self._column = state["paddle"], state["row"], state["column"]


class CatchShard(ToyShard):
    """Environments of Catch."""

    emulator_type = CatchEmulator
    game = "catch"
    action_names = ACTION_NAMES
