"""Count a run's agent steps and updates, and convert agent steps to emulator frames and back.

One agent step is `frame_skip` emulator frames. Resets and the no-op frames before an episode's first
observation are not counted: the counters count transitions, as published learning curves do. All conversions
between units are in this module.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from atari_dqn.types import StateDict

FRAMES_PER_SECOND = 60
"""The frame rate of the console: 59.92 exactly, 60 by convention."""


def frames_to_steps(frames: int, *, frame_skip: int) -> int:
    """Compute the number of agent steps that cover `frames` emulator frames, rounded up."""
    return -(-frames // frame_skip)


def steps_to_frames(steps: int, *, frame_skip: int) -> int:
    """Compute the number of emulator frames in `steps` agent steps."""
    return steps * frame_skip


@dataclass(kw_only=True)
class Clock:
    """Counters of a run's agent steps and updates."""

    frame_skip: int
    prefill_steps: int
    steps: int = 0
    updates: int = 0
    _learning_from_steps: int = field(init=False)
    _updates_before: int = 0
    """Number of updates that were made before step `_learning_from_steps`."""

    def __post_init__(self) -> None:
        self._learning_from_steps = self.prefill_steps

    @property
    def env_frames(self) -> int:
        """Emulator frames played so far, over all environments."""
        return steps_to_frames(self.steps, frame_skip=self.frame_skip)

    @property
    def learning(self) -> bool:
        """Whether the random prefill has ended."""
        return self.steps >= self.prefill_steps

    @property
    def filling(self) -> bool:
        """Whether the replay is being filled, at the start or after a resume without its transitions.

        No update is due while it is.
        """
        return self.steps < self._learning_from_steps

    @property
    def learning_frames(self) -> int:
        """Emulator frames since the end of the prefill; 0 before it."""
        return steps_to_frames(max(0, self.steps - self.prefill_steps), frame_skip=self.frame_skip)

    @property
    def updates_since_refill(self) -> int:
        """Updates since the replay was empty: at the start, or at a resume without its transitions."""
        return self.updates - self._updates_before

    def updates_due(self, *, period_steps: int, updates_per_period: int = 1) -> int:
        """Compute the number of updates due, for the periods of agent steps since the prefill ended."""
        periods = (self.steps - self._learning_from_steps) // period_steps
        return max(0, periods * updates_per_period - self.updates_since_refill)

    def refill(self) -> None:
        """Postpone updates until the replay, which is now empty, holds `prefill_steps` again.

        `learning_frames`, on which ε depends, continues from where it is.
        """
        self._learning_from_steps = self.steps + self.prefill_steps
        self._updates_before = self.updates

    def advance(self, *, steps: int, updates: int) -> None:
        """Add the steps and updates of one iteration."""
        self.steps += steps
        self.updates += updates

    def state_dict(self) -> StateDict:
        """Return the counters as plain data."""
        return {
            "steps": self.steps,
            "updates": self.updates,
            "learning_from_steps": self._learning_from_steps,
            "updates_before": self._updates_before,
        }

    def load_state_dict(self, state: StateDict) -> None:
        """Restore the counters."""
        self.steps, self.updates = state["steps"], state["updates"]
        self._learning_from_steps = state["learning_from_steps"]
        self._updates_before = state["updates_before"]


@dataclass(kw_only=True)
class Every:
    """A periodic event: due once each time a count reaches or passes a multiple of `period`.

    Multiples that are passed together count as one.
    """

    period: int
    passed: int = 0
    """Number of multiples handled so far."""

    def is_due(self, count: int) -> bool:
        """Return whether `count` has reached a multiple of the period that is not marked yet."""
        return count // self.period > self.passed

    def mark(self, count: int) -> None:
        """Mark every multiple up to `count` as handled."""
        self.passed = max(self.passed, count // self.period)

    def due(self, count: int) -> bool:
        """Return whether the event is due at `count`, and mark it as handled."""
        is_due = self.is_due(count)
        self.mark(count)
        return is_due

    def state_dict(self) -> StateDict:
        """Return the number of multiples handled."""
        return {"passed": self.passed}

    def load_state_dict(self, state: StateDict) -> None:
        """Restore the number of multiples handled."""
        self.passed = state["passed"]
