"""The process of an actor: it obeys orders from a pipe until the learner closes it or ends."""

from __future__ import annotations

import signal
import traceback
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
from atari_dqn.envs.processes import end_with_parent
from atari_dqn.machine.allocator import keep_freed_memory
from atari_dqn.machine.devices import set_kernels
from atari_dqn.spec.schema import Spec

_ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run_actor(
    pipe: Connection,
    parent: int | None,
    spec: Spec,
    number: int,
    incarnation: int,
    published: Any,
    counts: StepCounts,
) -> None:
    """Play by orders. An error is sent as text and ends the process."""
    end_with_parent(parent)
    for ending in _ENDING_SIGNALS:  # a terminal signals the whole process group; only the learner reacts
        signal.signal(ending, signal.SIG_IGN)
    try:
        prepare_process()
        count_steps = partial(counts.add, number)
        obey(pipe, build_role(spec, number, published, incarnation=incarnation, count_steps=count_steps))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return  # the learner has closed the pipe, or has ended
    except Exception:
        _answer(pipe, Letter.FAILED, traceback.format_exc().encode())


def prepare_process() -> None:
    """Let this process compute with one thread, in the same way as every actor's."""
    set_kernels(torch.device("cpu"), threads=1, deterministic=True)
    cv2.setNumThreads(1)
    keep_freed_memory()


def obey(pipe: Connection, role: ActorRole) -> None:
    """Obey orders until the pipe is closed."""
    while True:
        order = pipe.recv_bytes()
        _answer(pipe, Letter(order[:1]), carry_out(role, order))


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


def _answer(pipe: Connection, letter: Letter, body: bytes) -> None:
    pipe.send_bytes(letter)
    pipe.send_bytes(body)
