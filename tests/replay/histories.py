"""The complete history of environments whose steps are stored in a replay, to rebuild samples from."""

from dataclasses import dataclass

import numpy as np
import torch
from hypothesis import strategies as st
from tapes import batch

STACK, GAMMA, BOUND = 3, 0.9, 2.0
PLAIN, GAME_OVER, CAP, LIFE = "plain", "game over", "cap", "life"
EVENTS = st.sampled_from([PLAIN, PLAIN, PLAIN, GAME_OVER, CAP, LIFE])


@dataclass
class Row:
    """A time step of one environment: its observation, and the action and its result once they are known."""

    frame: tuple[int, ...]
    first: bool
    action: int = -1
    reward: float = 0.0
    discount: float = 1.0
    is_step: bool = False


def encoded(slot: int, row: int) -> tuple[int, int, int]:
    return slot + 1, row // 256, row % 256


class History:
    """Plays events into a buffer and keeps everything."""

    def __init__(self, buffer, envs: int) -> None:
        self.buffer, self.envs = buffer, [[Row(encoded(slot, 0), True)] for slot in range(envs)]
        self.ended = np.zeros(envs, dtype=bool)
        buffer.begin(self._batch(np.zeros(envs), {}, np.ones(envs, dtype=bool)))

    def play(self, events: tuple[str, ...]) -> None:
        number, resets = len(self.envs[0]), self.ended.copy()
        rewards = np.where(resets, 0.0, [(number * 7 + slot * 3) % 9 - 4 for slot in range(len(self.envs))])
        actions = np.array([(number + 5 * slot) % 18 for slot in range(len(self.envs))])
        flags = {
            "terminated": [e == GAME_OVER and not r for e, r in zip(events, resets, strict=True)],
            "truncated": [e == CAP and not r for e, r in zip(events, resets, strict=True)],
            "life_lost": [e in (GAME_OVER, LIFE) and not r for e, r in zip(events, resets, strict=True)],
        }
        for slot, rows in enumerate(self.envs):
            rows[-1] = Row(
                rows[-1].frame, rows[-1].first, int(actions[slot]), float(rewards[slot]),
                0.0 if flags["life_lost"][slot] else 1.0, not resets[slot],
            )  # fmt: skip
            rows.append(Row(encoded(slot, number), bool(resets[slot])))
        self.ended = np.array(flags["terminated"]) | np.array(flags["truncated"])
        step = self._batch(rewards, flags, resets)
        self.buffer.append(actions, step.discount(terminal_on_life_loss=True), step, self.states(number - 1))

    def _batch(self, rewards, flags, first):
        frames = np.array([[rows[-1].frame] for rows in self.envs])
        return batch(frames, reward=rewards, first=first, **flags)

    def states(self, row: int) -> torch.Tensor:
        """Return the recurrent states before the frames of a row, which are zero at an episode's start."""
        numbers = [
            [0.0, 0.0] if rows[row].first else [slot + 1.0, row] for slot, rows in enumerate(self.envs)
        ]
        return torch.tensor(numbers)

    def stack(self, slot: int, row: int, stack: int = STACK) -> list[tuple[int, ...]]:
        rows, frames = self.envs[slot], []
        while len(frames) < stack:
            frames.append(rows[row].frame)
            if rows[row].first:
                break
            row -= 1
        return [(0, 0, 0)] * (stack - len(frames)) + frames[::-1]
