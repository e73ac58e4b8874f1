"""Accumulate the unclipped returns and the lengths of the episodes of all environments."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from atari_dqn.types import StateDict, StepBatch


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """A finished episode."""

    slot: int
    episode_return: float
    length_steps: int
    end_reason: str
    """`game_over`, or `frame_cap` if the episode was truncated."""


class EpisodeTracker:
    """Accumulates the rewards and steps of each environment until its episode ends."""

    def __init__(self, envs: int) -> None:
        self.returns = np.zeros(envs)
        self.length_steps = np.zeros(envs, dtype=np.int64)

    def finished(self, step: StepBatch) -> list[Episode]:
        """Add one step of every environment, and return the episodes that ended with it."""
        self.returns += step.reward
        self.length_steps += ~step.first
        episodes = [self._episode(int(slot), step) for slot in np.flatnonzero(step.ended)]
        self.returns[step.ended] = 0.0
        self.length_steps[step.ended] = 0
        return episodes

    def _episode(self, slot: int, step: StepBatch) -> Episode:
        return Episode(
            slot=slot,
            episode_return=float(self.returns[slot]),
            length_steps=int(self.length_steps[slot]),
            end_reason="game_over" if step.terminated[slot] else "frame_cap",
        )

    def state_dict(self) -> StateDict:
        """Return the sums of the unfinished episodes."""
        return {"returns": self.returns.copy(), "length_steps": self.length_steps.copy()}

    def load_state_dict(self, state: StateDict) -> None:
        """Load the sums."""
        self.returns[:] = state["returns"]
        self.length_steps[:] = state["length_steps"]
