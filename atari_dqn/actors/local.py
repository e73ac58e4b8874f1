"""Actors in processes of this machine: orders and messages through pipes, weights through shared memory."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from multiprocessing.connection import wait

import numpy as np
import torch
from jaxtyping import Float32

from atari_dqn.actors.build import envs_of_actor
from atari_dqn.actors.local_process import SHUTDOWN_SECONDS, LocalProcess, start_process
from atari_dqn.actors.process import run_actor
from atari_dqn.actors.snapshot import SharedSnapshot
from atari_dqn.actors.step_counts import StepCounts
from atari_dqn.actors.weights import FlatWeights
from atari_dqn.assembly.parts import build_network
from atari_dqn.spec.constraints import given
from atari_dqn.spec.schema import Spec
from atari_dqn.types import GameInfo


class LocalCarrier:
    """Implements `Carrier` with a process of this machine for each actor."""

    def __init__(self, spec: Spec, info: GameInfo) -> None:
        self._spec = spec
        self._counts = StepCounts(given(spec.actors.processes))
        self._snapshot = SharedSnapshot(FlatWeights(build_network(spec, info, torch.device("cpu"))).size)

    def start(self, number: int, incarnation: int) -> LocalProcess:
        """Start the process of an actor."""
        num_envs, num_actors = self._spec.env.num_envs, given(self._spec.actors.processes)
        envs = envs_of_actor(number, num_envs=num_envs, num_actors=num_actors)
        name = f"actor {number} (environments {envs.start} to {envs.stop - 1})"
        return start_process(name, run_actor, self._spec, number, incarnation, self._snapshot, self._counts)

    def ready(self, actors: Mapping[int, LocalProcess], timeout_seconds: float) -> list[int]:
        """Return the actors whose answer has begun to arrive, or that have ended."""
        ready = wait([actor.pipe for actor in actors.values()], timeout_seconds)
        return [number for number, actor in actors.items() if actor.pipe in ready]

    def publish(self, version: int, flat: Float32[np.ndarray, "n"]) -> None:
        """Publish weights."""
        self._snapshot.publish(version, flat)

    def steps_played(self, number: int) -> int:
        """Return the number of steps that an actor has played."""
        return self._counts.played(number)

    def end(self, actors: Sequence[LocalProcess]) -> None:
        """End the processes of actors."""
        for actor in actors:
            actor.pipe.close()  # all of them first, so that they end at the same time
        deadline = time.monotonic() + SHUTDOWN_SECONDS
        for actor in actors:
            actor.end(within_seconds=max(0.0, deadline - time.monotonic()))
