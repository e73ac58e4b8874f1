"""Parts that a spec selects by name; other packages may add networks and losses (docs/extending.md)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from atari_dqn.registry import Registry

if TYPE_CHECKING:
    from torch.optim import Optimizer

    from atari_dqn.agent.losses import LossFn
    from atari_dqn.agent.torsos import Torso

NETWORKS: Registry[Callable[..., Torso]] = Registry(
    "network",
    [
        ("data_efficient", "atari_dqn.agent.torsos:DataEfficientTorso"),
        ("dopamine", "atari_dqn.agent.torsos:DopamineTorso"),
        ("impala", "atari_dqn.agent.impala:ImpalaTorso"),
        ("nature", "atari_dqn.agent.torsos:NatureTorso"),
        ("nature_layer_norm", "atari_dqn.agent.layer_norm:NormalizedNatureTorso"),
    ],
    group="atari_dqn.networks",
)

LOSSES: Registry[Callable[..., LossFn]] = Registry(
    "loss",
    [("huber", "atari_dqn.agent.value_kinds:huber"), ("mse", "atari_dqn.agent.value_kinds:mse")],
    group="atari_dqn.losses",
)

OPTIMIZERS: Registry[Callable[..., Optimizer]] = Registry(
    "optimizer",
    [
        ("adam", "atari_dqn.agent.optimizers:adam"),
        ("deepmind_rmsprop", "atari_dqn.agent.optimizers:deepmind_rmsprop"),
        ("radam", "atari_dqn.agent.optimizers:radam"),
        ("torch_rmsprop", "atari_dqn.agent.optimizers:torch_rmsprop"),
    ],
)
