"""Accumulate the unclipped returns and the lengths of the episodes of all environments."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Int64

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

    def add_steps(self, steps: StepBatch, first_env: int = 0) -> None:
        """Add consecutive steps of the environments from `first_env` on, with which no episode ended."""
        slots = slice(first_env, first_env + steps.reward.shape[1])
        # one after the other: sums are those of steps that come one at a time
        self.returns[slots] = np.add.accumulate([self.returns[slots], *steps.reward])[-1]
        self.length_steps[slots] += np.count_nonzero(~steps.first, axis=0)

    def add_step(self, step: StepBatch, first_env: int = 0) -> list[Episode]:
        """Add a step of the environments from `first_env` on; return the episodes that ended with it."""
        slots = slice(first_env, first_env + len(step.reward))
        self.returns[slots] += step.reward
        self.length_steps[slots] += ~step.first
        ended = np.flatnonzero(step.ended)
        episodes = [self._episode(first_env + env, step.terminated[env]) for env in ended.tolist()]
        self._forget(first_env + ended)
        return episodes

    def forget(self, envs: range) -> None:
        """Forget the unfinished episodes of environments, which begin anew."""
        self._forget(np.arange(envs.start, envs.stop))

    def _forget(self, slots: Int64[np.ndarray, "n"]) -> None:
        self.returns[slots] = 0.0
        self.length_steps[slots] = 0

    def _episode(self, slot: int, terminated: bool) -> Episode:
        return Episode(
            slot=slot,
            episode_return=float(self.returns[slot]),
            length_steps=int(self.length_steps[slot]),
            end_reason="game_over" if terminated else "frame_cap",
        )

    def state_dict(self) -> StateDict:
        """Return the sums of the unfinished episodes."""
        return {"returns": self.returns.copy(), "length_steps": self.length_steps.copy()}

    def load_state_dict(self, state: StateDict) -> None:
        """Load the sums."""
        self.returns[:] = state["returns"]
        self.length_steps[:] = state["length_steps"]
