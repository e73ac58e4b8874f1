"""The process of an actor: it carries out orders from a pipe until the learner closes it or ends."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

import cv2
import torch

from atari_dqn.actors.build import build_role
from atari_dqn.actors.message import encode
from atari_dqn.actors.orders import Letter, decode_order
from atari_dqn.actors.role import ActorRole
from atari_dqn.actors.state_codec import decode_state, encode_state
from atari_dqn.actors.step_counts import StepCounts
from atari_dqn.envs.pieces import receive_bytes, send_bytes
from atari_dqn.envs.processes import end_with_parent, ignore_ending_signals
from atari_dqn.machine.allocator import keep_freed_memory
from atari_dqn.machine.devices import set_kernels
from atari_dqn.spec.schema import Spec

CarryOut = Callable[[bytes], bytes]
"""Carries out an order, and returns the answer to it."""


def run_actor(
    pipe: Connection,
    parent: int | None,
    spec: Spec,
    number: int,
    incarnation: int,
    published: Any,
    counts: StepCounts,
) -> None:
    """Play by orders."""

    def make() -> CarryOut:
        count_steps = partial(counts.add, number)
        role = build_role(spec, number, published, incarnation=incarnation, count_steps=count_steps)
        return partial(carry_out, role)

    run_by_orders(pipe, parent, make)


def run_by_orders(pipe: Connection, parent: int | None, make: Callable[[], CarryOut]) -> None:
    """Carry out orders until the learner closes the pipe or ends. An error is sent as text, and is the end.

    `make`: makes what carries them out, in a process that is prepared.
    """
    end_with_parent(parent)
    ignore_ending_signals()
    try:
        prepare_process()
        _obey(pipe, make())
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return  # the learner has closed the pipe, or has ended
    except Exception:
        send_bytes(pipe, Letter.FAILED + traceback.format_exc().encode())


def prepare_process() -> None:
    """Let this process compute with one thread, in the same way as every actor's."""
    set_kernels(torch.device("cpu"), threads=1, deterministic=True)
    cv2.setNumThreads(1)
    keep_freed_memory()


def _obey(pipe: Connection, carry_out: CarryOut) -> None:
    """Obey orders until the pipe is closed."""
    while True:
        order = receive_bytes(pipe)
        send_bytes(pipe, Letter(order[:1]) + carry_out(order))


def carry_out(role: ActorRole, order: bytes) -> bytes:
    """Carry out an order, and return the answer to it."""
    match Letter(order[:1]):
        case Letter.PLAY:
            return encode(role.play(decode_order(order[1:])), compressed=True)
        case Letter.GET_STATE:
            return encode_state(role.state_dict())
        case Letter.SET_STATE:
            role.load_state_dict(decode_state(order[1:]))
            return b""
        case Letter.FAILED:
            raise ValueError("this letter is an answer, and no order")
