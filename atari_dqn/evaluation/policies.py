"""Score policies of other programs in the games of our evaluations."""

from __future__ import annotations

from operator import index
from typing import Any, Protocol, SupportsIndex

import numpy as np
from jaxtyping import Int64, UInt8
from numpy.typing import NDArray

from atari_dqn.errors import UserError
from atari_dqn.evaluation.outputs import Output, Stacks
from atari_dqn.types import StepBatch

_LONGEST_SHOWN = 60


class Policy(Protocol):
    """Selects the actions of one game at a time; several games may take turns."""

    def act(self, observation: NDArray[np.uint8], state: Any) -> tuple[int, Any]:
        """Return the index of an action, and a state for the next call in the same game.

        `observation`, u8[S, H, W], is the stack of the newest frames; `state` is None at a game's beginning.
        """
        ...


class PolicyOutputs:
    """The actions of a policy as q-values: 1 for the action that it selects, 0 for the others."""

    def __init__(self, policy: Policy, *, num_actions: int, envs: int) -> None:
        self._policy, self._num_actions = policy, num_actions
        self._states: list[Any] = [None] * envs

    def compute(
        self,
        stacks: Stacks,
        playing: Int64[np.ndarray, "E"],
        *,
        acting: Int64[np.ndarray, "n"],
        needed: Int64[np.ndarray, "m"],
    ) -> dict[int, Output]:
        """Advance the policy in all environments that act, and return the outputs that are needed."""
        del playing
        found = {slot: Output(self._act(slot, stacks[slot]), None) for slot in acting.tolist()}
        return {slot: found[slot] for slot in needed.tolist()}

    def observe(self, actions: Int64[np.ndarray, "E"], step: StepBatch) -> None:
        """Do nothing: a policy gets its observations when it acts."""

    def begin_game(self, slot: int) -> None:
        """Forget the state of an environment."""
        self._states[slot] = None

    def _act(self, slot: int, frames: UInt8[np.ndarray, "S H W"]) -> NDArray[np.float32]:
        answer: object = self._policy.act(frames.copy(), self._states[slot])
        if not isinstance(answer, tuple) or len(answer) != 2:
            raise UserError(
                f"act(observation, state) returned {repr(answer)[:_LONGEST_SHOWN]}, "
                "expected an action and the state for the next call"
            )
        action, self._states[slot] = answer
        q_values = np.zeros(self._num_actions, dtype=np.float32)
        chosen = _index(action)
        if chosen is None or not 0 <= chosen < self._num_actions:
            raise UserError(
                f"the policy selected {repr(action)[:_LONGEST_SHOWN]}, "
                f"expected an action from 0 to {self._num_actions - 1}"
            )
        q_values[chosen] = 1.0
        return q_values


def _index(action: object) -> int | None:
    """Convert an action to an integer; None for what is none, such as a boolean or an array."""
    if isinstance(action, bool | np.bool_) or not isinstance(action, SupportsIndex):
        return None
    try:
        return index(action)
    except TypeError:  # an array has the method of integers, but only a single number is one
        return None
