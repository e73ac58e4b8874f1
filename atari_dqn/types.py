"""Arrays and protocols that cross module boundaries.

Letters in shapes: E environments, B minibatch, S stacked frames, H×W one frame, A actions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float64, Int64, UInt8

StateDict = dict[str, Any]
"""State as plain data: dicts and lists of numbers, strings, booleans, None, arrays and tensors."""


@runtime_checkable
class Stateful(Protocol):
    """Anything whose state is part of a checkpoint: out and in symmetrically."""

    def state_dict(self) -> StateDict:
        """Return the whole state as plain data."""
        ...

    def load_state_dict(self, state: StateDict) -> None:
        """Take over a state that `state_dict` returned."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class StepBatch:
    """What E environments show after one step.

    Rows with `first` set ignored their action: they are new episodes.
    """

    frame: UInt8[np.ndarray, "E H W"]
    """Newest preprocessed frame."""
    reward: Float64[np.ndarray, "E"]
    """The game's own reward, summed over the step's frames, unclipped."""
    terminated: Bool[np.ndarray, "E"]
    """The game is over."""
    truncated: Bool[np.ndarray, "E"]
    """The episode reached its frame cap; the game was not over."""
    life_lost: Bool[np.ndarray, "E"]
    """A life was lost in this step, the last one included."""
    first: Bool[np.ndarray, "E"]
    """The frame is a new episode's first; reward is 0 and no flag is set."""

    @property
    def ended(self) -> Bool[np.ndarray, "E"]:
        """The episode ended, for either reason; the environment's next step is its reset."""
        ended: np.ndarray = self.terminated | self.truncated
        return ended

    def discount(self, *, terminal_on_life_loss: bool) -> Float64[np.ndarray, "E"]:
        """Return what the learner multiplies γ by: 0 at an end it must not bootstrap over, else 1."""
        dead = self.terminated | self.life_lost if terminal_on_life_loss else self.terminated
        return np.where(dead, 0.0, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class GameInfo:
    """What is known of a game before it is played."""

    game: str
    action_names: tuple[str, ...]
    """Names of the actions by index, as the emulator's own enumeration gives them, lower case."""
    frame_shape: tuple[int, int]
    rom_md5: str
    """MD5 of the ROM, empty for a game that has none."""

    @property
    def num_actions(self) -> int:
        """Number of actions an agent may choose from."""
        return len(self.action_names)


class Environments(Protocol):
    """E copies of one game that step together, wherever they run.

    Autoreset takes a step of its own: after a row with `terminated` or `truncated` the environment's next
    step ignores its action and returns the new episode's first frame, with `first` set. The arrays of a
    returned `StepBatch` may be reused by the next `send`: copy what must last.
    """

    @property
    def info(self) -> GameInfo:
        """The game all environments play."""
        ...

    @property
    def num_envs(self) -> int:
        """E."""
        ...

    @property
    def num_processes(self) -> int:
        """How many processes emulate at once; 1 where it is the caller's own."""
        ...

    @property
    def busy_seconds(self) -> float:
        """Time spent playing steps so far, added up over the processes."""
        ...

    def reset(self) -> StepBatch:
        """Begin a new episode on every environment."""
        ...

    def send(self, actions: Int64[np.ndarray, "E"]) -> None:
        """Begin one step on every environment; returns at once where environments run elsewhere."""
        ...

    def recv(self) -> StepBatch:
        """Wait for the step that `send` began."""
        ...

    def check(self) -> None:
        """Raise an error if a worker process has ended; called between steps, when no answer is awaited."""
        ...

    def stop_waiting_when(self, stop: Callable[[], bool]) -> None:
        """Wait only a few seconds more for workers that do not answer, once `stop()` is true."""
        ...

    def state_dict(self) -> StateDict:
        """Return every environment's state; not allowed between `send` and `recv`."""
        ...

    def load_state_dict(self, state: StateDict) -> None:
        """Take over a state of as many environments, however they were spread over processes."""
        ...

    def close(self) -> None:
        """End worker processes and free shared memory; safe to call twice."""
        ...
