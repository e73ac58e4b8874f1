"""The orders of a learner to an actor, and their form as bytes: a letter, and what it needs."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import Enum

import numpy as np
from jaxtyping import Float64

from atari_dqn.envs.worker_handle import WorkerDiedError, WorkerFailedError

_VERSION = struct.Struct("<q")


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """An order to play one fragment."""

    epsilon: Float64[np.ndarray, "L"]
    """ε of each environment of the actor."""
    least_version: int
    """The actor fetches weights if its own are older."""


class Letter(bytes, Enum):
    """The first byte of an order; an answer begins with the same one."""

    PLAY = b"p"  # with an order; the answer is a message
    GET_STATE = b"g"  # the answer is a state
    SET_STATE = b"s"  # with a state; the answer is empty
    FAILED = b"f"  # an answer: the text of an error, with which the actor ends


def encode_order(order: Order) -> bytes:
    """Return an order to play as bytes."""
    return Letter.PLAY + _VERSION.pack(order.least_version) + order.epsilon.astype("<f8").tobytes()


def decode_order(data: bytes) -> Order:
    """Return the order that bytes after the letter hold."""
    epsilon = np.frombuffer(data, dtype="<f8", offset=_VERSION.size).astype(np.float64)
    return Order(epsilon=epsilon, least_version=_VERSION.unpack_from(data)[0])


class ActorDiedError(WorkerDiedError):
    """An actor ended or failed; the message names it, its environments and the reason."""


class ActorFailedError(ActorDiedError, WorkerFailedError):
    """An actor raised an exception, whose traceback the message has."""
