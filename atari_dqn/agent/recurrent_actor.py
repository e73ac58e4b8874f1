"""Acting with memory: the recurrent state, last action and last reward of each environment.

At an episode's first frame state and reward are zero, and there is no action. A lost life does not begin an
episode, whether the learner treats it as terminal or not, so the state continues. The last frame of an
episode, by game over or truncation, is also an input of the network: its action is ignored, because the
environment resets itself in that step (`Environments`).

    frames        A   B   C   D | E   F          | = game over or truncation, at D life lost             !
    state before  0   a   b   c   0   e          x = the state after frame X
    action   ·   1   2   3   ·   5          the action that the actor selected on the frame before; · = none
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor

from atari_dqn.agent.actor import Actor
from atari_dqn.agent.memory import RecurrentQNetwork
from atari_dqn.minibatch import NO_ACTION, Frames, to_device
from atari_dqn.types import StateDict, StepBatch

Places = list[int] | slice
_ALL = slice(None)


class Past:
    """The recurrent state, last action and last reward of each environment."""

    def __init__(
        self, network: RecurrentQNetwork, *, envs: int, max_abs_reward: float, device: torch.device
    ) -> None:
        self._network, self._max_abs_reward = network, max_abs_reward
        self.state = torch.zeros((envs, network.memory.width), device=device)
        """The recurrent state before the newest frame."""
        self.last_action = torch.full((envs,), NO_ACTION, dtype=torch.int64, device=device)
        self.last_reward = torch.zeros(envs, device=device)
        self._next_state = torch.zeros_like(self.state)

    @torch.inference_mode()
    def q_values(self, stacks: Frames, rows: Places = _ALL, envs: Places = _ALL) -> Float[Tensor, "N A"]:
        """Compute the q-values of the newest stacks, and the states after them.

        `rows`: the rows of `stacks` that belong to the environments `envs`; the others are padding.
        """
        last_action, last_reward, state = (
            torch.zeros((len(stacks), *own.shape[1:]), dtype=own.dtype, device=own.device)
            for own in (self.last_action, self.last_reward, self.state)
        )
        last_action[rows], last_reward[rows] = self.last_action[envs], self.last_reward[envs]
        state[rows] = self.state[envs]
        q, state = self._network.unroll(stacks, last_action[:, None], last_reward[:, None], state)
        self._next_state[envs] = state[rows]
        return q[:, 0]

    def observe(self, actions: Int64[np.ndarray, "E"], step: StepBatch) -> None:
        """Continue with the next frames; forget everything at an episode's first frame."""
        clipped = np.clip(step.reward, -self._max_abs_reward, self._max_abs_reward)
        first, action, reward = (
            to_device(torch.from_numpy(each), self.state.device) for each in (step.first, actions, clipped)
        )
        self.state.copy_(self._next_state).masked_fill_(first[:, None], 0.0)
        self.last_action.copy_(action).masked_fill_(first, NO_ACTION)
        self.last_reward.copy_(reward).masked_fill_(first, 0.0)

    def state_dict(self) -> StateDict:
        """Return the state, the last action and the last reward of each environment."""
        return {"state": self.state, "last_action": self.last_action, "last_reward": self.last_reward}

    def load_state_dict(self, state: StateDict) -> None:
        """Restore what `state_dict` returned."""
        for name, own in self.state_dict().items():
            own.copy_(torch.as_tensor(state[name]))


class RecurrentActor(Actor):
    """An actor whose network has memory; it advances in every step, also if all environments explore."""

    def __init__(self, network: RecurrentQNetwork, *, max_abs_reward: float, **parts: Any) -> None:
        super().__init__(network, **parts)
        self.past = Past(network, envs=self.envs, max_abs_reward=max_abs_reward, device=self.generator.device)
        self.memory = self.past.state
        self._latest = np.zeros(self.envs, dtype=np.int64)

    def observe(self, step: StepBatch) -> None:
        """Append the newest frames to the stacks, and continue or forget the past of each environment."""
        super().observe(step)
        self.past.observe(self._latest, step)

    def begin(self, epsilon: float | Float64[np.ndarray, "E"]) -> bool:
        """Draw which environments explore, and compute the greedy actions."""
        if not super().begin(epsilon):
            self.select()
        return True

    def finish(self, greedy: Int64[np.ndarray, "E"] | None) -> Int64[np.ndarray, "E"]:
        """Combine random and greedy actions, and remember them."""
        self._latest = super().finish(greedy)
        return self._latest

    def _compute_greedy(self) -> None:
        self.actions.copy_(self.past.q_values(self.stacks).argmax(dim=1))

    def state_dict(self) -> StateDict:
        """Collect the state of an actor, and the past of each environment."""
        return {**super().state_dict(), "past": self.past.state_dict()}

    def load_state_dict(self, state: StateDict) -> None:
        """Restore the state of an actor, and the past of each environment."""
        super().load_state_dict(state)
        self.past.load_state_dict(state["past"])
