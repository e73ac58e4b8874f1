"""Recall: a toy game that needs memory, with the interface of an Atari emulator.

A game is a pause and five trials. In each trial a half of the screen lights up, left or right; the screen
goes dark; a bar at the bottom asks for the answer, which is the action of the trial's last frame. `left` or
`right`, where the light was, has reward 1, every other action −1.

    frames   32      | 12     40    8        | 12     40    8        | … 5 times
    screen   dark    | light  dark  bar      | light  dark  bar      |
    answer           |                  here |                  here |

Screens depend on nothing but the frame number and the sides of the lights, which are independent and equally
probable; actions change no screen. Let an observation be the S newest frames at a frame skip of k, each the
maximum of two screens. The step of the answer begins at most k frames before it, so that the oldest screen
of the observation is at most S k + 1 frames before the answer, and the light is 49 frames before it at
least. If S k ≤ 47, this observation is the same whichever side was lit, and an agent without memory answers
independently of the side: whatever its policy, an answer has the expected reward 0 at most, and a game the
expected score **0 at most**. At k = 4 this holds up to S = 11, and so for 1 and for 4 frames. An agent that
remembers the last light has the score **5**. Random actions score −5/3.

No-op starts of up to 30 frames fall in the pause. With a frame skip of up to 8 the bar is in the observation
before the answer, and the light is in at least one observation of every trial.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import UInt8

from atari_dqn.envs.palette import IDENTITY_PALETTE
from atari_dqn.envs.toy import ToyShard
from atari_dqn.rng import stream_seed
from atari_dqn.types import StateDict

PAUSE_FRAMES = 32
LIGHT_FRAMES = 12
DARK_FRAMES = 40
BAR_FRAMES = 8
TRIAL_FRAMES = LIGHT_FRAMES + DARK_FRAMES + BAR_FRAMES
TRIALS = 5
ACTION_NAMES = ("noop", "right", "left")
_LAST_FRAME = PAUSE_FRAMES + TRIALS * TRIAL_FRAMES
_BAR_SHARE = 6
"""The bar is a sixth of the screen high."""
_BRIGHT = 255


class RecallEmulator:
    """The game as an implementation of `Emulator`."""

    def __init__(self, size_pixels: int) -> None:
        self.screen_shape = (size_pixels, size_pixels)
        self.palette = IDENTITY_PALETTE
        self.reset(0)

    def reset(self, episode_seed: int) -> None:
        """Begin a new game; the seed determines the sides of the lights."""
        self._game_seed = episode_seed
        self._frame = 0

    def side(self, trial: int) -> int:
        """Return the side of the light in a trial: the action that is the right answer."""
        return 1 + stream_seed(self._game_seed, "light", trial) % 2

    def act(self, action: int) -> float:
        """Go on by one frame; return ±1 for the answer of a trial, else 0."""
        trial = self._trial()
        self._frame += 1
        if self._frame <= PAUSE_FRAMES or self._phase() != 0:
            return 0.0
        return 1.0 if action == self.side(trial) else -1.0

    def game_over(self) -> bool:
        """Return whether all trials are over."""
        return self._frame == _LAST_FRAME

    def lives(self) -> int:
        """Return 0: the game has no lives."""
        return 0

    def write_screen(self, screen: UInt8[np.ndarray, "H W"]) -> None:
        """Draw the light or the bar, white on black; nothing in the pause and between both."""
        screen.fill(0)
        size = len(screen)
        if self._frame < PAUSE_FRAMES or self.game_over():
            return
        if self._phase() < LIGHT_FRAMES:
            half = slice(size // 2, size) if self.side(self._trial()) == 1 else slice(0, size // 2)
            screen[:, half] = _BRIGHT
        elif self._phase() >= LIGHT_FRAMES + DARK_FRAMES:
            screen[size - size // _BAR_SHARE :] = _BRIGHT

    def _trial(self) -> int:
        return (self._frame - PAUSE_FRAMES) // TRIAL_FRAMES

    def _phase(self) -> int:
        """Return the number of the frame in its trial."""
        return (self._frame - PAUSE_FRAMES) % TRIAL_FRAMES

    def rgb(self) -> UInt8[np.ndarray, "H W 3"]:
        """Return the screen in RGB, which is grey."""
        screen = np.zeros(self.screen_shape, np.uint8)
        self.write_screen(screen)
        return np.repeat(screen[:, :, None], 3, axis=2)

    def state_dict(self) -> StateDict:
        """Return the game's state."""
        return {"game_seed": self._game_seed, "frame": self._frame}

    def load_state_dict(self, state: StateDict) -> None:
        """Restore a state; `ValueError` if no game can reach it."""
        if not 0 <= state["frame"] <= _LAST_FRAME:
            raise ValueError(f"frame: found {state['frame']}, expected 0 to {_LAST_FRAME}")
        self._game_seed, self._frame = state["game_seed"], state["frame"]


class RecallShard(ToyShard):
    """Environments of Recall."""

    emulator_type = RecallEmulator
    game = "recall"
    action_names = ACTION_NAMES
