"""Find the key to lower if a network does not fit: the one whose half makes the network smallest."""

from __future__ import annotations

from dataclasses import replace

from atari_dqn.machine.sizes import NetworkShape, network_bytes
from atari_dqn.spec.schema import Spec


def key_of_weights(spec: Spec, network: NetworkShape) -> str:
    """Return the key for which half of its value makes the network of a spec smallest."""
    values = "num_atoms" if spec.distribution.num_atoms else "num_quantiles"
    halved = {
        "network.hidden_units": replace(network, hidden_units=network.hidden_units // 2),
        "network.memory_units": replace(network, memory_units=network.memory_units // 2),
        "network.width": replace(network, width=max(1, network.width // 2)),
        f"distribution.{values}": replace(network, outputs=max(1, network.outputs // 2)),
    }
    return min(halved, key=lambda key: network_bytes(halved[key]))
