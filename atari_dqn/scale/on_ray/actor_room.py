"""What an actor needs of a node, and whether the nodes of a cluster have room for actors and learner."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from atari_dqn.errors import UserError
from atari_dqn.formatting import plural, size
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
    def id(self) -> str:
        """Ray's identity of the node."""
        ...

    @property
    def name(self) -> str:
        """The node's host and address."""
        ...

    @property
    def cores(self) -> int:
        """Number of cores."""
        ...

    @property
    def free_ram(self) -> int:
        """Bytes of free memory."""
        ...


@dataclass(frozen=True, kw_only=True)
class LearnerNeed:
    """What the learner takes of its node."""

    node: str
    """Ray's identity of its node."""
    ram: int
    """Bytes of memory, by the plan of the run."""


def actor_need(spec: Spec) -> ActorNeed:
    """Compute what an actor of a spec needs."""
    weights = network_bytes(network_shape(spec, MOST_ACTIONS))
    return ActorNeed(per_core=given(spec.system.actors_per_core), ram=actor_bytes(weights))


def store_bytes(spec: Spec) -> int:
    """Compute what Ray's object store holds on one machine: messages on their way, and some versions."""
    weights = network_bytes(network_shape(spec, MOST_ACTIONS))
    return 2 * messages_item(spec).bytes + _VERSIONS_KEPT * weights


def check_actors_fit(
    spec: Spec, nodes: Iterable[NodeCapacity], learner: LearnerNeed, *, has_begun: bool = False
) -> None:
    """Raise a `UserError` if the nodes of a cluster have too little room for the actors and the learner.

    `has_begun`: whether the run has begun, and therefore keeps its spec.
    """
    need, processes = actor_need(spec), given(spec.actors.processes)
    rooms = {node.name: _actors_on(node, need, learner) for node in nodes}
    if sum(rooms.values()) < processes:
        found = ", ".join(f"{name} {count}" for name, count in rooms.items())
        remedy = (
            "add nodes, lower the first or replay.capacity_steps, or raise the last to let more share cores"
        )
        if has_begun:
            remedy = "add nodes, or free memory on these: a run that has begun keeps its spec"
        raise UserError(
            f"actors.processes is {processes}, and the cluster has room for {sum(rooms.values())} "
            f"({found}): an actor needs {size(need.ram)} of RAM, the learner {size(learner.ram)} of this "
            f"machine's, and a core is for {plural(need.per_core, 'actor')} (system.actors_per_core); "
            f"{remedy}"
        )


def _actors_on(node: NodeCapacity, need: ActorNeed, learner: LearnerNeed) -> int:
    ram = node.free_ram - (learner.ram if node.id == learner.node else 0)
    return min(node.cores * need.per_core, max(0, ram) // need.ram)
