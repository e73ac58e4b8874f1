"""The ε-greedy policy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from jaxtyping import Int64, UInt8
from torch import Tensor

from atari_dqn.agent.compiled import Compiled
from atari_dqn.agent.network import QNetwork
from atari_dqn.agent.random_draws import Rng
from atari_dqn.minibatch import Pixels
from atari_dqn.rng import generator_state, restore_generator, set_generator_state
from atari_dqn.types import StateDict

Greedy = Callable[[], Int64[np.ndarray, "E"]]
"""Returns the action that each environment's network values most."""


def greedy_actions(network: QNetwork, stacks: Pixels, rng: Rng | None = None) -> Int64[Tensor, "E"]:
    """Return the action each of E environments' network values most; the first of several that are equal.

    With random numbers under noise, where the network has any.
    """
    # in inference mode PyTorch compiles no view of a weight
    with torch.no_grad() if torch.compiler.is_compiling() else torch.inference_mode():
        actions: Tensor = network.preferences(stacks, rng, noise_rows=len(stacks)).argmax(dim=1)
        return actions


class EpsilonGreedy:
    """Explores each environment with probability ε, else takes the action of the highest value.

    Both draws of an environment are made whatever ε is, so that the stream's place depends on the number of
    choices alone. Where every environment explores, the network is not asked.
    """

    def __init__(
        self,
        network: QNetwork,
        *,
        envs: int,
        num_actions: int,
        stream: np.random.Generator,
        generator: torch.Generator,
        compiled: bool = False,
    ) -> None:
        self.network, self.envs, self.num_actions, self.stream = network, envs, num_actions, stream
        self.generator = generator
        """The stream of the network's own noise, on its device."""
        self._compiled = compiled
        self._ask = Compiled(self._ask_network) if compiled else self._ask_network
        self.greedy_counts = np.zeros(num_actions, dtype=np.int64)
        """How often each action was the greedy one so far, where the network was asked."""

    def choose(self, ask: Greedy, epsilon: float) -> Int64[np.ndarray, "E"]:
        """Return one action per environment; `ask` is called only if some environment needs it."""
        explores = self.stream.random(self.envs) < epsilon
        random_actions = self.stream.integers(self.num_actions, size=self.envs)
        if explores.all():
            return random_actions
        greedy = ask()
        self.greedy_counts += np.bincount(greedy, minlength=self.num_actions)
        return np.where(explores, random_actions, greedy)

    def greedy(self, stacks: UInt8[Tensor, "E S H W"]) -> Int64[Tensor, "E"]:
        """Return the action each environment's network values most, under fresh noise where it has any."""
        if self._compiled:
            stacks = self.network.arrange(stacks, compiled=True)
        actions: Tensor = self._ask(self.generator, stacks)
        return actions

    def _ask_network(self, rng: Rng, stacks: Pixels) -> Int64[Tensor, "E"]:
        return greedy_actions(self.network, stacks, rng)

    def state_dict(self) -> StateDict:
        """Return both streams' states and the counts of greedy actions."""
        return {
            "stream": generator_state(self.stream),
            "generator": self.generator.get_state(),
            "greedy_counts": self.greedy_counts.copy(),
        }

    def load_state_dict(self, state: StateDict) -> None:
        """Put streams and counts where they were."""
        set_generator_state(self.stream, state["stream"])
        restore_generator(self.generator, state["generator"])
        self.greedy_counts[:] = state["greedy_counts"]
