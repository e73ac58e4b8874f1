"""Helpers of the tests of agents with memory: networks and minibatches of sequences of random frames."""

import torch
from torch import Tensor, nn

from atari_dqn.agent.heads import DuelingHead, LinearHead
from atari_dqn.agent.init import initialize
from atari_dqn.agent.memory import MEMORIES, RecurrentQNetwork
from atari_dqn.agent.torsos import NatureTorso
from atari_dqn.minibatch import SequenceBatch

ACTIONS, SIDE = 3, 36


def make_recurrent_network(
    kind: str = "lstm", *, units: int = 8, hidden: int = 16, stack: int = 1, has_inputs: bool = True,
    seed: int = 0,
) -> RecurrentQNetwork:  # fmt: skip
    head = DuelingHead if hidden else LinearHead
    torso = NatureTorso(stack=stack, frame_shape=(SIDE, SIDE), layer=lambda *_: nn.Identity())
    features = hidden * head.streams
    network = RecurrentQNetwork(
        torso,
        MEMORIES[kind](torso.num_encoded + (1 + ACTIONS if has_inputs else 0), units),
        nn.Sequential(nn.Linear(units, features), nn.ReLU()) if hidden else nn.Identity(),
        head(features or units, ACTIONS),
        num_actions=ACTIONS,
        has_inputs=has_inputs,
    )
    generator = torch.Generator().manual_seed(seed)
    initialize(network, init="he_uniform", generator=generator)
    network.memory.initialize(generator)
    return network


def make_sequences(
    size: int = 4, *, steps: int = 5, burn_in: int = 3, stack: int = 1, width: int = 16, **columns: Tensor
) -> SequenceBatch:  # fmt: skip
    """Make sequences of random frames; the first begins its episode, and the last is two steps shorter."""
    generator = torch.Generator().manual_seed(3)
    frames = burn_in + steps + 1
    is_first = torch.arange(size) == 0
    mask = torch.ones((size, steps), dtype=torch.bool)
    mask[-1, -2:] = False
    shape = (size, frames + stack - 1, SIDE, SIDE)
    plain = {
        "frames": torch.randint(0, 256, shape, generator=generator, dtype=torch.uint8),
        "last_action": torch.arange(size * frames).view(size, frames) % (ACTIONS + 1) - 1,
        "last_reward": torch.randn(size, frames, generator=generator),
        "state": torch.randn(size, width, generator=generator).masked_fill(is_first[:, None], 0.0),
        "is_first": is_first,
        "mask": mask,
        "a_tm1": torch.arange(size * steps).view(size, steps) % ACTIONS,
        "r_t": torch.randn(size, steps, generator=generator),
        "discount_t": torch.full((size, steps), 0.9),
        "end_t": torch.minimum(torch.arange(2, steps + 2).expand(size, -1), mask.sum(dim=1, keepdim=True)),
        "weight": torch.ones(size),
        "index": torch.arange(size),
    }
    return SequenceBatch(**(plain | columns))
