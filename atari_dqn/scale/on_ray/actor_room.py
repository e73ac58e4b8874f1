"""What an actor needs of a node, and whether the nodes of a cluster have room for all actors of a run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from atari_dqn.errors import UserError
from atari_dqn.formatting import size
from atari_dqn.machine.actors import actor_bytes, messages_item
from atari_dqn.machine.learner_items import network_shape
from atari_dqn.machine.sizes import MOST_ACTIONS, network_bytes
from atari_dqn.spec.constraints import given
from atari_dqn.spec.schema import Spec

_VERSIONS_KEPT = 16
"""Versions of the weights of which an actor may still have the reference: a second or two."""
_RAY_PARTS = 10_000
"""Ray counts cores in parts of this number."""


@dataclass(frozen=True, kw_only=True)
class ActorNeed:
    """What one actor takes of a node."""

    per_core: int
    """Number of actors that may share a core."""
    ram: int
    """Bytes of memory, by the plan of the run."""

    @property
    def core_share(self) -> float:
        """The part of a core that Ray reserves."""
        return _RAY_PARTS // self.per_core / _RAY_PARTS


class NodeCapacity(Protocol):
    """What Ray may give to actors on a node (`cluster.Node`)."""

    @property
    def name(self) -> str:
        """The node's host and address."""
        ...

    @property
    def cores(self) -> int:
        """Number of cores."""
        ...

    @property
    def ram(self) -> int:
        """Bytes of memory."""
        ...


def actor_need(spec: Spec) -> ActorNeed:
    """Compute what an actor of a spec needs."""
    weights = network_bytes(network_shape(spec, MOST_ACTIONS))
    return ActorNeed(per_core=given(spec.system.actors_per_core), ram=actor_bytes(weights))


def store_bytes(spec: Spec) -> int:
    """Compute what Ray's object store holds on one machine: messages on their way, and some versions."""
    weights = network_bytes(network_shape(spec, MOST_ACTIONS))
    return 2 * messages_item(spec).bytes + _VERSIONS_KEPT * weights


def check_actors_fit(spec: Spec, nodes: Iterable[NodeCapacity]) -> None:
    """Raise a `UserError` if the nodes of a cluster have too little room for the actors of a spec."""
    need, processes = actor_need(spec), given(spec.actors.processes)
    rooms = {node.name: _actors_on(node, need) for node in nodes}
    if sum(rooms.values()) < processes:
        found = ", ".join(f"{name} {count}" for name, count in rooms.items())
        raise UserError(
            f"actors.processes is {processes}, and the cluster has room for {sum(rooms.values())} "
            f"({found}): an actor needs {size(need.ram)} of RAM, and {need.per_core} share a core "
            "(system.actors_per_core); add nodes, lower the first, or raise the last to let more share cores"
        )


def _actors_on(node: NodeCapacity, need: ActorNeed) -> int:
    return min(node.cores * need.per_core, node.ram // need.ram)
