"""Catch: a toy game in the Atari games' clothes, for fast tests.

A ball falls straight down a board of 24×24 cells, a cell each frame; a paddle five cells wide moves a cell
each frame. Catching the ball is worth 1, missing it −1 and a life; the game is over with no lives left or
after ten balls. A frame skip of up to 5 lets a perfect player catch every ball.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import UInt8

from atari_dqn.envs.emulator import NOOP
from atari_dqn.envs.greys import SAME_GREYS
from atari_dqn.envs.shard import Shard, slot_streams
from atari_dqn.errors import UserError
from atari_dqn.rng import stream_seed
from atari_dqn.spec.games import TOY_GAME
from atari_dqn.spec.schema import Env
from atari_dqn.types import GameInfo, StateDict

BOARD_CELLS = 24
PADDLE_HALF_CELLS = 2
LIVES = 3
BALLS = 10
ACTION_NAMES = ("noop", "right", "left")
_MOVES_CELLS = (0, 1, -1)
_BRIGHT = 255


class CatchEmulator:
    """The game behind the protocol `Emulator`."""

    def __init__(self, size_pixels: int) -> None:
        self.screen_shape = (size_pixels, size_pixels)
        self.greys = SAME_GREYS
        self._cell_edges = np.linspace(0, size_pixels, BOARD_CELLS + 1).round().astype(int).tolist()
        self._game_seed = 0
        self._balls = 0
        self._lives = LIVES
        self._paddle = self._row = self._column = 0
        self.reset(0)

    def reset(self, episode_seed: int) -> None:
        """Begin a new game; the seed decides where the balls fall."""
        self._game_seed = episode_seed
        self._balls = 0
        self._lives = LIVES
        self._paddle = BOARD_CELLS // 2
        self._drop()

    def _drop(self) -> None:
        self._row = 0
        self._column = stream_seed(self._game_seed, "ball", self._balls) % BOARD_CELLS

    def act(self, action: int) -> float:
        """Move the paddle and the ball by a cell; return ±1 when the ball comes down."""
        leftmost, rightmost = PADDLE_HALF_CELLS, BOARD_CELLS - 1 - PADDLE_HALF_CELLS
        self._paddle = min(max(self._paddle + _MOVES_CELLS[action], leftmost), rightmost)
        self._row += 1
        return self._land() if self._row == BOARD_CELLS - 1 else 0.0

    def _land(self) -> float:
        caught = abs(self._column - self._paddle) <= PADDLE_HALF_CELLS
        self._lives -= not caught
        self._balls += 1
        self._drop()
        return 1.0 if caught else -1.0

    def game_over(self) -> bool:
        """Return whether the lives or the balls are gone."""
        return self._lives == 0 or self._balls == BALLS

    def lives(self) -> int:
        """Return the lives left."""
        return self._lives

    def colours(self, screen: UInt8[np.ndarray, "H W"]) -> None:
        """Draw the ball and the paddle, bright on black."""
        edges, row, column = self._cell_edges, self._row, self._column
        screen.fill(0)
        screen[edges[row] : edges[row + 1], edges[column] : edges[column + 1]] = _BRIGHT
        left, right = self._paddle - PADDLE_HALF_CELLS, self._paddle + PADDLE_HALF_CELLS + 1
        screen[edges[-2] :, edges[left] : edges[right]] = _BRIGHT

    def rgb(self) -> UInt8[np.ndarray, "H W 3"]:
        """Return the screen in colour: grey."""
        screen = np.zeros(self.screen_shape, np.uint8)
        self.colours(screen)
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
        """Take over a state; `ValueError` for one that no game reaches."""
        limits = {"balls": BALLS, "lives": LIVES, "paddle": BOARD_CELLS - 1, "row": BOARD_CELLS - 2,
                  "column": BOARD_CELLS - 1}  # fmt: skip
        for name, most in limits.items():
            if not 0 <= state[name] <= most:
                raise ValueError(f"{name}: found {state[name]}, expected 0 to {most}")
        self._game_seed, self._balls, self._lives = state["game_seed"], state["balls"], state["lives"]
        self._paddle, self._row, self._column = state["paddle"], state["row"], state["column"]


class CatchShard(Shard):
    """Environments of Catch. Every reset is a power-on reset, and the action set is always the full one."""

    def __init__(
        self,
        *,
        game: str,
        env: Env,
        envs: range,
        num_envs: int,
        seed: int,
        stream: str,
        power_on_reset: bool,  # noqa: ARG002 — true of this game either way
    ) -> None:
        if game != TOY_GAME:
            raise UserError(f"unknown game {game!r} for env.kind = 'catch'; expected game = {TOY_GAME!r}")
        size = env.screen_size_pixels
        info = GameInfo(game=game, action_names=ACTION_NAMES, frame_shape=(size, size), rom_md5="")
        streams = slot_streams(envs=envs, num_envs=num_envs, seed=seed, stream=stream)
        super().__init__([CatchEmulator(size) for _ in envs], streams, env, info)


assert ACTION_NAMES[NOOP] == "noop"
