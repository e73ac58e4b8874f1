"""The worker process: it runs one shard by commands from a pipe and writes results to shared memory."""

from __future__ import annotations

import pickle
import time
import traceback
from enum import Enum
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import cv2
import numpy as np

from atari_dqn.envs.buffers import batch_in_memory, select_envs
from atari_dqn.envs.pieces import receive_bytes, send_bytes
from atari_dqn.envs.processes import end_with_parent, ignore_ending_signals
from atari_dqn.envs.shard import BuildShard
from atari_dqn.errors import UserError


class SharedMemory(NamedTuple):
    """The `RawArray`s that parent and workers share. ctypes has no static type for them."""

    frames: Any
    """The bytes of a `StepBatch` of all environments."""
    actions: Any
    """An int64 for each environment."""
    busy_seconds: Any
    """A float64 for each worker: the time it has spent in steps."""


class Command(bytes, Enum):
    """A command to a worker. Commands are bytes because pickling one at every step would be slow."""

    RESET = b"reset"
    STEP = b"step"
    GET_STATES = b"get states"
    SET_STATES = b"set states"  # the states follow, pickled


class Outcome(bytes, Enum):
    """The outcome of a command; what follows it is sent by `pieces`."""

    DONE = b"done"
    RESULT = b"result"  # follows, pickled
    USER_ERROR = b"user error"  # its text follows
    FAILED = b"failed"  # the traceback follows


def work(
    pipe: Connection,
    parent: int | None,
    build_shard: BuildShard,
    index: int,
    envs: range,
    num_envs: int,
    memory: SharedMemory,
) -> None:
    """Send the shard's `info`, then run commands until the parent closes the pipe or ends.

    `parent`: its process id. `index`: the number of this worker. `envs`: the environments of its shard, of
    `num_envs` in all. An error is sent as text and ends the worker.
    """
    end_with_parent(parent)
    ignore_ending_signals()
    try:
        _serve(pipe, build_shard, index, envs, num_envs, memory)
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return  # the parent has closed the pipe, or has ended
    except UserError as error:
        _answer(pipe, Outcome.USER_ERROR, str(error).encode())
    except Exception:
        _answer(pipe, Outcome.FAILED, traceback.format_exc().encode())


def _answer(pipe: Connection, outcome: Outcome, content: bytes) -> None:
    pipe.send_bytes(outcome)
    send_bytes(pipe, content)


def _serve(
    pipe: Connection,
    build_shard: BuildShard,
    index: int,
    envs: range,
    num_envs: int,
    memory: SharedMemory,
) -> None:
    cv2.setNumThreads(1)
    shard = build_shard(envs=envs)
    batch = batch_in_memory(np.frombuffer(memory.frames, np.uint8), num_envs, shard.info.frame_shape)
    rows = select_envs(batch, envs)
    actions = np.frombuffer(memory.actions, np.int64)[envs.start : envs.stop]
    busy_seconds = np.frombuffer(memory.busy_seconds, np.float64)
    _answer(pipe, Outcome.RESULT, pickle.dumps(shard.info))
    while True:
        match pipe.recv_bytes():
            case Command.STEP:
                began = time.perf_counter()
                shard.step(actions, rows)
                busy_seconds[index] += time.perf_counter() - began
                pipe.send_bytes(Outcome.DONE)
            case Command.RESET:
                shard.reset(rows)
                pipe.send_bytes(Outcome.DONE)
            case Command.GET_STATES:
                _answer(pipe, Outcome.RESULT, pickle.dumps(shard.state_dicts()))
            case Command.SET_STATES:
                shard.load_state_dicts(pickle.loads(receive_bytes(pipe)))  # noqa: S301 - of our own process
                pipe.send_bytes(Outcome.DONE)
