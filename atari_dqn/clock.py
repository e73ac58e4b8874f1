"""The run's clock, and the only place where steps become emulator frames.

One agent step is `frame_skip` emulator frames. A reset row is no step, and no-op frames before an episode's
first observation are not counted: counters are transitions, as in the published learning curves.
"""

from __future__ import annotations

from dataclasses import dataclass

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

    @property
    def env_frames(self) -> int:
        """Emulator frames played so far, over all lanes."""
        return steps_to_frames(self.steps, frame_skip=self.frame_skip)

    @property
    def learning(self) -> bool:
        """The random prefill is over."""
        return self.steps >= self.prefill_steps

    @property
    def learning_frames(self) -> int:
        """Emulator frames since the prefill ended; 0 before."""
        return steps_to_frames(max(0, self.steps - self.prefill_steps), frame_skip=self.frame_skip)

    def updates_due(self, *, period_steps: int) -> int:
        """Return the updates owed: one per `period_steps` agent steps since the prefill ended."""
        return max(0, self.steps - self.prefill_steps) // period_steps - self.updates

    def advance(self, *, steps: int, updates: int) -> None:
        """Count what one tick did."""
        self.steps += steps
        self.updates += updates

    def state_dict(self) -> StateDict:
        """Return the counters."""
        return {"steps": self.steps, "updates": self.updates}

    def load_state_dict(self, state: StateDict) -> None:
        """Take over the counters."""
        self.steps, self.updates = state["steps"], state["updates"]


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
