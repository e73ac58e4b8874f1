"""The run's clock, and the only place where steps become emulator frames.

One agent step is `frame_skip` emulator frames. A reset row is no step, and no-op frames before an episode's
first observation are not counted: counters are transitions, as in the published learning curves.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from atari_dqn.types import StateDict


def frames_to_steps(frames: int, *, frame_skip: int) -> int:
    """Return the agent steps it takes to pass `frames` emulator frames, rounded up."""
    return -(-frames // frame_skip)


def steps_to_frames(steps: int, *, frame_skip: int) -> int:
    """Return the emulator frames that `steps` agent steps take."""
    return steps * frame_skip


@dataclass(kw_only=True)
class Clock:
    """Counts a run's agent steps and updates."""

    frame_skip: int
    prefill_steps: int
    steps: int = 0
    updates: int = 0
    _learning_from_steps: int = field(init=False)
    _updates_before: int = 0
    """Updates that were made before `_learning_from_steps`."""

    def __post_init__(self) -> None:
        self._learning_from_steps = self.prefill_steps

    @property
    def env_frames(self) -> int:
        """Emulator frames played so far, over all environments."""
        return steps_to_frames(self.steps, frame_skip=self.frame_skip)

    @property
    def learning(self) -> bool:
        """The random prefill is over."""
        return self.steps >= self.prefill_steps

    @property
    def filling(self) -> bool:
        """The replay is filling, at the start or after a resume without its rows: no update is owed."""
        return self.steps < self._learning_from_steps

    @property
    def learning_frames(self) -> int:
        """Emulator frames since the prefill ended; 0 before."""
        return steps_to_frames(max(0, self.steps - self.prefill_steps), frame_skip=self.frame_skip)

    def updates_due(self, *, period_steps: int) -> int:
        """Return the updates owed: one per `period_steps` agent steps since the prefill, or refill, ended."""
        learned_steps = self.steps - self._learning_from_steps
        return max(0, learned_steps // period_steps - (self.updates - self._updates_before))

    def refill(self) -> None:
        """Owe no update until the replay, which is empty now, holds a prefill again. ε goes on as it was."""
        self._learning_from_steps = self.steps + self.prefill_steps
        self._updates_before = self.updates

    def advance(self, *, steps: int, updates: int) -> None:
        """Count what one tick did."""
        self.steps += steps
        self.updates += updates

    def state_dict(self) -> StateDict:
        """Return the counters."""
        return {
            "steps": self.steps,
            "updates": self.updates,
            "learning_from_steps": self._learning_from_steps,
            "updates_before": self._updates_before,
        }

    def load_state_dict(self, state: StateDict) -> None:
        """Take over the counters."""
        self.steps, self.updates = state["steps"], state["updates"]
        self._learning_from_steps = state["learning_from_steps"]
        self._updates_before = state["updates_before"]


@dataclass(kw_only=True)
class Every:
    """Comes due each time a count passes a multiple of `period`; one passing is reported once."""

    period: int
    passed: int = 0

    def is_due(self, count: int) -> bool:
        """Return whether `count` has passed a multiple of the period that was not marked yet."""
        return count // self.period > self.passed

    def mark(self, count: int) -> None:
        """Take every multiple up to `count` as dealt with."""
        self.passed = max(self.passed, count // self.period)

    def due(self, count: int) -> bool:
        """Return whether `count` is due, and mark it."""
        is_due = self.is_due(count)
        self.mark(count)
        return is_due

    def state_dict(self) -> StateDict:
        """Return how many multiples were reported."""
        return {"passed": self.passed}

    def load_state_dict(self, state: StateDict) -> None:
        """Take over how many multiples were reported."""
        self.passed = state["passed"]
