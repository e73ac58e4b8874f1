"""A worker process: one shard, told over a pipe what to do, writing its rows into shared memory."""

from __future__ import annotations

import signal
import traceback
from enum import Enum, auto
from multiprocessing.connection import Connection
from typing import Any

import cv2
import numpy as np

from atari_dqn.envs.buffers import batch_over, rows_of
from atari_dqn.envs.lanes import BuildShard
from atari_dqn.errors import UserError

SharedMemory = Any
"""A `RawArray` of bytes; ctypes has no static type for it."""


class Command(Enum):
    """What a worker is told."""

    RESET = auto()
    STEP = auto()
    GET_STATES = auto()
    SET_STATES = auto()


class Outcome(Enum):
    """How it went; the answer's second half is the result, or the text of the error."""

    DONE = auto()
    USER_ERROR = auto()
    FAILED = auto()


def work(
    pipe: Connection,
    build_shard: BuildShard,
    lanes: range,
    num_lanes: int,
    frames: SharedMemory,
    actions: SharedMemory,
) -> None:
    """Serve the parent until it hangs up. Errors go to it as text, and end the worker."""
    _leave_signals_to_the_parent()
    try:
        _serve(pipe, build_shard, lanes, num_lanes, frames, actions)
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return  # the parent hung up, or is dead
    except UserError as error:
        pipe.send((Outcome.USER_ERROR, str(error)))
    except Exception:
        pipe.send((Outcome.FAILED, traceback.format_exc()))


def _leave_signals_to_the_parent() -> None:
    """Ignore what a terminal or a scheduler sends to the whole process group."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def _serve(
    pipe: Connection,
    build_shard: BuildShard,
    lanes: range,
    num_lanes: int,
    frames: SharedMemory,
    actions: SharedMemory,
) -> None:
    cv2.setNumThreads(1)
    shard = build_shard(lanes=lanes)
    memory = np.frombuffer(frames, np.uint8)
    rows = rows_of(batch_over(memory, num_lanes, shard.info.frame_shape), lanes)
    mine = np.frombuffer(actions, np.int64)[lanes.start : lanes.stop]
    pipe.send((Outcome.DONE, shard.info))
    while True:
        result = None
        match pipe.recv():
            case (Command.STEP, _):
                shard.step(mine, rows)
            case (Command.RESET, _):
                shard.reset(rows)
            case (Command.GET_STATES, _):
                result = shard.state_dicts()
            case (Command.SET_STATES, states):
                shard.load_state_dicts(states)
        pipe.send((Outcome.DONE, result))
