"""Actors that play nothing: threads of a few processes, which send real messages when they are ordered to.

Each thread is one actor with a pipe of its own, as an actor's process has. Its messages are made once, from
steps of a real game, with its number and a valid checksum; it sends one for each order, not sooner than an
actor of its frame rate would have played it.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from multiprocessing.connection import Connection, wait
from threading import Thread
from typing import Any

from atari_dqn.actors.build import build_role
from atari_dqn.actors.message import Fragment, decode, encode
from atari_dqn.actors.orders import ActorDiedError, Letter, Order
from atari_dqn.actors.weights import FlatWeights
from atari_dqn.assembly.parts import build_network
from atari_dqn.envs.pieces import receive_bytes, send_bytes
from atari_dqn.envs.silence import SilenceLimit
from atari_dqn.spec.schema import Spec

import numpy as np

FRAME_SKIP = 4


class FirstWeights:
    """Implements `Published` with the initial weights of one network."""

    def __init__(self) -> None:
        self.flat = np.zeros(0, dtype=np.float32)

    def fetch(self, least_version: int) -> tuple[int, np.ndarray]:
        assert least_version == 0
        return 0, self.flat


def played(spec: Spec) -> tuple[Fragment, Fragment]:
    """Play two fragments of one actor: the first one of an incarnation, and the next."""
    published = FirstWeights()
    role = build_role(spec, 0, published)
    published.flat = FlatWeights(build_network(spec, role.envs.info, _cpu())).read()
    order = Order(epsilon=np.ones(role.envs.num_envs), least_version=0)
    fragments = decode(encode(role.play(order))), decode(encode(role.play(order)))
    role.close()
    return fragments


def _cpu() -> Any:
    import torch

    return torch.device("cpu")


def _send(pipe: Connection, first: bytes, next_one: bytes, seconds: float) -> None:
    """Answer each order with a message, at most one in `seconds`, until the pipe is closed."""
    message, due = first, time.monotonic()
    try:
        while True:
            receive_bytes(pipe)
            time.sleep(max(0.0, due - time.monotonic()))
            due = max(due, time.monotonic() - seconds) + seconds
            send_bytes(pipe, Letter.PLAY + message)
            message = next_one
    except (EOFError, OSError):
        return


def _simulate(
    pipes: Mapping[int, Connection], fragments: tuple[Fragment, Fragment], seconds: float, compressed: bool
) -> None:
    """Run the threads of some actors."""
    threads = []
    for number, pipe in pipes.items():
        first, next_one = (encode(replace(each, actor=number), compressed=compressed) for each in fragments)
        threads.append(Thread(target=_send, args=(pipe, first, next_one, seconds)))
        threads[-1].start()
    for thread in threads:
        thread.join()


class SimulatedActor:
    """Implements `Handle`: the learner's end of the pipe of a simulated actor."""

    def __init__(self, pipe: Connection, count: Callable[[int], None]) -> None:
        self.pipe, self._count = pipe, count

    def send(self, order: bytes, silence: SilenceLimit) -> None:
        send_bytes(self.pipe, order, silence)

    def answer(self, silence: SilenceLimit) -> bytes:
        try:
            message = receive_bytes(self.pipe, silence)[1:]
        except (EOFError, OSError) as error:
            raise ActorDiedError("a simulated actor has ended") from error
        self._count(len(message))
        return message

    def check(self, _: SilenceLimit) -> None:
        return

    def resume(self) -> None:
        return


class SimulatedCarrier:
    """Implements `Carrier` with simulated actors in a few processes, all of which are started at once.

    `frames_per_second`: of one actor; None for as many as the pipes take.
    """

    def __init__(
        self,
        spec: Spec,
        *,
        actors: int,
        processes: int,
        frames_per_second: float | None,
        compressed: bool = False,
    ) -> None:
        self.messages = self.bytes = 0
        fragments = played(spec)
        steps = fragments[1].frame.shape[0] * fragments[1].frame.shape[1]
        seconds = FRAME_SKIP * steps / frames_per_second if frames_per_second else 0.0
        context = multiprocessing.get_context("spawn")
        pairs = [context.Pipe() for _ in range(actors)]
        self._handles = [SimulatedActor(ours, self._count) for ours, _ in pairs]
        self._processes = []
        for first in range(min(processes, actors)):
            theirs = {number: pairs[number][1] for number in range(first, actors, processes)}
            target = partial(_simulate, theirs, fragments, seconds, compressed)
            self._processes.append(context.Process(target=target, daemon=True))
            self._processes[-1].start()
        for _, pipe in pairs:
            pipe.close()

    def start(self, number: int, incarnation: int) -> SimulatedActor:
        assert incarnation == 0, "a simulated actor ends with its process"
        return self._handles[number]

    def ready(self, actors: Mapping[int, SimulatedActor], timeout_seconds: float) -> list[int]:
        ready = set(wait([actor.pipe for actor in actors.values()], timeout_seconds))
        return [number for number, actor in actors.items() if actor.pipe in ready]

    def publish(self, *weights: object) -> None:
        """Ignore weights: simulated actors play nothing."""

    def steps_played(self, _: int) -> int:
        return 0

    def end(self, actors: Sequence[SimulatedActor]) -> None:
        for actor in actors:
            actor.pipe.close()
        for process in self._processes:
            process.join(2.0)
            process.kill()

    def _count(self, size: int) -> None:
        self.messages += 1
        self.bytes += size
