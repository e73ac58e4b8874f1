"""A node of a cluster with what is free on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from atari_dqn.run.sweep.record import Member
from atari_dqn.scale.on_ray.cluster import Node
from atari_dqn.scale.room import Disk, Need, Needs, Room


class NodeRoom:
    """A node with what is free on it."""

    def __init__(
        self, node: Node, cores: Sequence[int], devices: Sequence[str], threads: int, disk: Disk
    ) -> None:
        self.node = node
        hardware = replace(node.hardware, memory_available_bytes=node.free_ram)
        self.room = Room(hardware, devices, cores=cores, disk=disk)
        self.cores = tuple(cores)
        self.used_by_others: set[int] = set()
        self._needs = Needs(node.hardware, threads)

    def needs_of(self, member: Member) -> dict[str, Need]:
        """Compute the need of a member on each device of the node."""
        return self._needs.by_device(member, self.room.devices)
