"""Arrays and protocols that several packages share.

Letters in shapes: E environments, B minibatch, S stacked frames, H×W one frame, A actions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float64, Int64, UInt8

StateDict = dict[str, Any]
"""A state as plain data: dicts and lists of numbers, strings, booleans, None, arrays and tensors."""


@runtime_checkable
class Stateful(Protocol):
    """An object whose state is part of a checkpoint."""

    def state_dict(self) -> StateDict:
        """Return the complete state as plain data."""
        ...

    def load_state_dict(self, state: StateDict) -> None:
        """Restore a state returned by `state_dict`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class StepBatch:
    """The result of one step of E environments; each array of T consecutive steps has an axis T before E.

    An environment with `first` set ignored its action and began a new episode.
    """

    frame: UInt8[np.ndarray, "*T E H W"]
    """The newest preprocessed frame."""
    reward: Float64[np.ndarray, "*T E"]
    """The game's reward, summed over the frames of the step and not clipped."""
    terminated: Bool[np.ndarray, "*T E"]
    """The game is over."""
    truncated: Bool[np.ndarray, "*T E"]
    """The episode reached its maximum length in frames before the game was over."""
    life_lost: Bool[np.ndarray, "*T E"]
    """A life was lost in this step, possibly the last one."""
    first: Bool[np.ndarray, "*T E"]
    """The frame is the first of a new episode; its reward is 0 and its other flags are False."""

    def __getitem__(self, steps: int | slice) -> StepBatch:
        """Return one or some of T consecutive steps, as views."""
        return StepBatch(
            frame=self.frame[steps],
            reward=self.reward[steps],
            terminated=self.terminated[steps],
            truncated=self.truncated[steps],
            life_lost=self.life_lost[steps],
            first=self.first[steps],
        )

    @property
    def ended(self) -> Bool[np.ndarray, "*T E"]:
        """Whether the episode ended, by termination or truncation; the next step resets the environment."""
        ended: np.ndarray = self.terminated | self.truncated
        return ended

    @property
    def num_steps(self) -> int:
        """Number of agent steps; a reset is none."""
        return int(np.count_nonzero(~self.first))

    def discount(self, *, terminal_on_life_loss: bool) -> Float64[np.ndarray, "*T E"]:
        """Compute the factor of γ in the learner's target: 0 where it must not bootstrap, otherwise 1."""
        dead = self.terminated | self.life_lost if terminal_on_life_loss else self.terminated
        return np.where(dead, 0.0, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class GameInfo:
    """Properties of a game that do not change while it is played."""

    game: str
    action_names: tuple[str, ...]
    """Name of each action by its index, in lower case, as in ALE's enumeration."""
    frame_shape: tuple[int, int]
    """Height and width of a preprocessed frame."""
    rom_md5: str
    """MD5 of the ROM; empty for a game without one."""

    @property
    def num_actions(self) -> int:
        """Number of actions."""
        return len(self.action_names)


class Emulators(Protocol):
    """E environments of one game, stepped in this process or in others."""

    @property
    def info(self) -> GameInfo:
        """Properties of the game."""
        ...

    @property
    def num_envs(self) -> int:
        """Number of environments, E."""
        ...

    @property
    def num_processes(self) -> int:
        """Number of processes that run emulators; 1 if only the calling process does."""
        ...

    @property
    def busy_seconds(self) -> float:
        """Time spent in steps so far, summed over the processes; NaN if nothing measures it."""
        ...

    def check(self) -> None:
        """Raise an error if a worker process has ended; between `send` and `recv`, do nothing."""
        ...

    def stop_waiting_when(self, stop: Callable[[], bool]) -> None:
        """Once `stop()` returns True, wait only a few more seconds for workers that do not answer."""
        ...

    def close(self) -> None:
        """End the worker processes and free shared memory; may be called twice."""
        ...


class Environments(Emulators, Protocol):
    """E environments of one game that step together, in this process or in others.

    An environment resets itself in the step after its episode ended (Gymnasium's `AutoresetMode.NEXT_STEP`):
    that step ignores its action and returns the first frame of the new episode, with `first` set. The next
    `send` may overwrite the arrays of a returned `StepBatch`: copy what must be kept.
    """

    def reset(self) -> StepBatch:
        """Begin a new episode in every environment."""
        ...

    def send(self, actions: Int64[np.ndarray, "E"]) -> None:
        """Begin a step of every environment; return at once if they run in other processes."""
        ...

    def recv(self) -> StepBatch:
        """Wait for the step that `send` began, and return its result."""
        ...

    def state_dict(self) -> StateDict:
        """Return the state of every environment; not allowed between `send` and `recv`."""
        ...

    def load_state_dict(self, state: StateDict) -> None:
        """Restore a state of the same number of environments, saved from any number of processes."""
        ...
