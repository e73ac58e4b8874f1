"""The actor: ε-greedy actions for a batch of environments, whose frame stacks it holds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from jaxtyping import Float64, Int64
from torch import Tensor

from atari_dqn.agent.network import QNetwork
from atari_dqn.agent.random_draws import Rng
from atari_dqn.minibatch import Frames, to_device
from atari_dqn.rng import generator_state, restore_generator, set_generator_state
from atari_dqn.types import StateDict, StepBatch


def greedy_actions(network: QNetwork, stacks: Frames, rng: Rng | None = None) -> Int64[Tensor, "E"]:
    """Compute each environment's action with the highest q-value; the first one if several are equal.

    Noisy layers draw noise for each environment from `rng`; without it they use their means.
    """
    with torch.inference_mode():
        actions: Tensor = network.q_values(stacks, rng, noise_rows=len(stacks)).argmax(dim=1)
        return actions


class Actor:
    """Selects a random action with probability ε and the greedy action otherwise, in each environment.

    Each environment makes two draws in each step, whatever ε is, so that the state of `stream` depends only
    on the number of steps. If all environments explore, no q-values are computed.

    The frame stacks, the greedy actions and the noise are on the network's device:

        frames   A   B   C   D | E   F   G          | = an episode's start
        stack of G (S = 4):      0   E   F   G      0 = the zero frame
    """

    def __init__(
        self,
        network: QNetwork,
        *,
        envs: int,
        num_actions: int,
        stack: int,
        frame_shape: tuple[int, int],
        stream: np.random.Generator,
        generator: torch.Generator,
    ) -> None:
        self.network, self.envs, self.num_actions, self.stream = network, envs, num_actions, stream
        self.generator = generator
        device = generator.device
        self.stacks = torch.zeros((envs, stack, *frame_shape), dtype=torch.uint8, device=device)
        self.actions = torch.zeros(envs, dtype=torch.int64, device=device)
        """The greedy actions of the latest step that computed them."""
        self.compute_greedy: Callable[[], None] = self._compute_greedy
        self.select: Callable[[], None] = self.compute_greedy
        """Writes `actions` for `begin`: `compute_greedy`, or a replay of its operations."""
        self.greedy_counts = np.zeros(num_actions, dtype=np.int64)
        """Number of times that each action was greedy, over the steps that computed q-values."""
        self.memory: Tensor | None = None
        """The recurrent states before the newest frames; None without memory."""
        self._explores, self._random = np.zeros(envs, dtype=np.bool_), np.zeros(envs, dtype=np.int64)

    def observe(self, step: StepBatch) -> None:
        """Append the newest frames to the stacks; at an episode's start, clear its stack first."""
        if self.stacks.is_cpu:  # NumPy, because PyTorch would make threads wait for a few kilobytes
            stacks = self.stacks.numpy()
            stacks[:, :-1], stacks[step.first], stacks[:, -1] = stacks[:, 1:], 0, step.frame
            return
        first, frame = (
            to_device(torch.from_numpy(each), self.stacks.device) for each in (step.first, step.frame)
        )
        self.stacks[:, :-1] = self.stacks[:, 1:].clone()
        self.stacks.masked_fill_(first[:, None, None, None], 0)
        self.stacks[:, -1] = frame

    def begin(self, epsilon: float | Float64[np.ndarray, "E"]) -> bool:
        """Draw which environments explore; return whether the greedy actions were computed."""
        self._explores = self.stream.random(self.envs) < epsilon
        self._random = self.stream.integers(self.num_actions, size=self.envs)
        if self._explores.all():
            return False
        self.select()
        return True

    def finish(self, greedy: Int64[np.ndarray, "E"] | None) -> Int64[np.ndarray, "E"]:
        """Combine random and greedy actions; `greedy` is None if `begin` returned False."""
        if greedy is None:
            return self._random
        self.greedy_counts += np.bincount(greedy, minlength=self.num_actions)
        return np.where(self._explores, self._random, greedy)

    def _compute_greedy(self) -> None:
        self.actions.copy_(greedy_actions(self.network, self.stacks, self.generator))

    def state_dict(self) -> StateDict:
        """Collect both random states and the counts; the stacks are rebuilt from the replay buffer."""
        return {
            "stream": generator_state(self.stream),
            "generator": self.generator.get_state(),
            "greedy_counts": self.greedy_counts.copy(),
        }

    def load_state_dict(self, state: StateDict) -> None:
        """Restore both random states and the counts."""
        set_generator_state(self.stream, state["stream"])
        restore_generator(self.generator, state["generator"])
        self.greedy_counts[:] = state["greedy_counts"]
