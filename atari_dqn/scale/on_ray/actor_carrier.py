"""Actors on the nodes of a Ray cluster: orders and messages as calls, weights in Ray's object store.

    learner ──order, reference of the newest weights──> actor
            <──steps played, message──────────────────
    store   weights of version 40 · of version 50       one copy on each node that fetches them

Ray places an actor on any node that has a core and memory for it, also one that begins anew.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import ray
from jaxtyping import Float32

from atari_dqn.actors.orders import ActorDiedError
from atari_dqn.actors.snapshot import checksum_of
from atari_dqn.scale.on_ray.actor_handle import RayActor
from atari_dqn.scale.on_ray.actor_room import ActorNeed, actor_need
from atari_dqn.scale.on_ray.cluster import Cluster, ClusterLostError
from atari_dqn.scale.on_ray.remote_actor import RemoteActor, Snapshot
from atari_dqn.spec.keys import flatten
from atari_dqn.spec.schema import Spec

_REPORT_SECONDS, _LOOK_SECONDS = 0.5, 2.0
"""Time between two reports of the steps played, and between two looks whether the cluster answers."""


class RayCarrier:
    """Implements `Carrier` with a Ray actor for each actor, which Ray neither restarts nor asks twice."""

    def __init__(self, spec: Spec, cluster: Cluster) -> None:
        self._values, self._options, self._cluster = flatten(spec), ray_options(actor_need(spec)), cluster
        self._snapshot: Snapshot = (-1, 0, [])
        self._current: dict[int, RayActor] = {}
        self._steps_before: Counter[int] = Counter()
        """Steps played by each actor's earlier incarnations."""
        self._reports_due = self._look_due = 0.0

    def start(self, number: int, incarnation: int) -> RayActor:
        """Start an actor on a node that has room for it; it waits for one if there is none now."""
        self._steps_before[number] = self.steps_played(number)
        remote = RemoteActor.options(**self._options).remote(self._values, number, incarnation)  # type: ignore[attr-defined]
        self._current[number] = RayActor(number, remote, lambda: self._snapshot)
        return self._current[number]

    def ready(self, actors: Mapping[int, RayActor], timeout_seconds: float) -> list[int]:
        """Return the actors whose next answer is on this node, or that have ended."""
        self._look_after(actors)
        numbers = {actor.next_answer: number for number, actor in actors.items()}
        answers: list[Any] = [each for each in numbers if each is not None]
        if not answers:
            time.sleep(timeout_seconds)
            return []
        done, _ = ray.wait(answers, num_returns=len(answers), timeout=0)
        if not done and timeout_seconds > 0:
            done, _ = ray.wait(answers, timeout=timeout_seconds)
        return [numbers[each] for each in done]

    def publish(self, version: int, flat: Float32[np.ndarray, "n"]) -> None:
        """Put weights into the object store, once; actors get the reference with their next order."""
        self._snapshot = (version, checksum_of(version, flat), [ray.put(flat)])

    def steps_played(self, number: int) -> int:
        """Return the number of steps that an actor has played, as far as they have been reported."""
        current = self._current.get(number)
        return self._steps_before[number] + (current.steps_played if current else 0)

    def end(self, actors: Sequence[RayActor]) -> None:
        """End actors."""
        for actor in actors:
            actor.end()

    def _look_after(self, actors: Mapping[int, RayActor]) -> None:
        """Read the reports that are due; `ActorDiedError` if the cluster does not answer any more."""
        now = time.monotonic()
        if now >= self._look_due:
            try:
                self._cluster.alive()
            except ClusterLostError as error:
                raise ActorDiedError(str(error)) from None
            self._look_due = time.monotonic() + _LOOK_SECONDS
        if now >= self._reports_due:
            for actor in actors.values():
                actor.read_report()
            self._reports_due = now + _REPORT_SECONDS


def ray_options(need: ActorNeed) -> dict[str, Any]:
    """Return the options with which Ray reserves a core, or a part of it, and memory for an actor."""
    return {
        "num_cpus": need.core_share,
        "memory": need.ram,
        "max_restarts": 0,
        "max_task_retries": 0,
        "scheduling_strategy": "SPREAD",
    }
