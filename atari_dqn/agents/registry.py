"""The parts a spec can choose by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from atari_dqn.registry import Registry

if TYPE_CHECKING:
    from torch.optim import Optimizer

    from atari_dqn.agents.torsos import Torso

NETWORKS: Registry[Callable[..., Torso]] = Registry(
    "network",
    [
        ("data_efficient", "atari_dqn.agents.torsos:DataEfficientTorso"),
        ("dopamine", "atari_dqn.agents.torsos:DopamineTorso"),
        ("impala", "atari_dqn.agents.torsos:ImpalaTorso"),
        ("nature", "atari_dqn.agents.torsos:NatureTorso"),
    ],
)

OPTIMIZERS: Registry[Callable[..., Optimizer]] = Registry(
    "optimizer",
    [
        ("adam", "atari_dqn.agents.optimizers:adam"),
        ("deepmind_rmsprop", "atari_dqn.agents.optimizers:deepmind_rmsprop"),
        ("torch_rmsprop", "atari_dqn.agents.optimizers:torch_rmsprop"),
    ],
)
