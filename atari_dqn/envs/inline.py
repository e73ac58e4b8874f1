"""Environments in the calling process."""

from __future__ import annotations

import time
from collections.abc import Callable

import cv2
import numpy as np
from jaxtyping import Int64

from atari_dqn.envs.buffers import new_batch
from atari_dqn.envs.shard import BuildShard
from atari_dqn.types import GameInfo, StateDict, StepBatch


class InlineEnvironments:
    """All environments in one shard. `send` plays the step, `recv` returns it. Implements `Environments`."""

    def __init__(self, build_shard: BuildShard, *, envs: range) -> None:
        cv2.setNumThreads(1)  # screens are small, and a waiting thread is slow next to other programs
        self._shard = build_shard(envs=envs)
        self._num_envs = len(envs)
        self._batch = new_batch(len(envs), self._shard.info.frame_shape)
        self._sent = False
        self.num_processes = 1
        self.busy_seconds = 0.0

    @property
    def info(self) -> GameInfo:
        """Properties of the game."""
        return self._shard.info

    @property
    def num_envs(self) -> int:
        """Number of environments, E."""
        return self._num_envs

    def reset(self) -> StepBatch:
        """Begin a new episode in every environment."""
        assert not self._sent, "reset between send and recv"
        self._shard.reset(self._batch)
        return self._batch

    def send(self, actions: Int64[np.ndarray, "E"]) -> None:
        """Play one step of every environment."""
        assert not self._sent, "send twice without recv"
        began = time.perf_counter()
        self._shard.step(actions, self._batch)
        self.busy_seconds += time.perf_counter() - began
        self._sent = True

    def recv(self) -> StepBatch:
        """Return the step that `send` played."""
        assert self._sent, "recv without send"
        self._sent = False
        return self._batch

    def check(self) -> None:
        """Do nothing: there are no other processes."""

    def stop_waiting_when(self, stop: Callable[[], bool]) -> None:
        """Do nothing: there are no other processes to wait for."""

    def state_dict(self) -> StateDict:
        """Return the state of every environment."""
        assert not self._sent, "state_dict between send and recv"
        return {"lanes": self._shard.state_dicts()}

    def load_state_dict(self, state: StateDict) -> None:
        """Restore a state of the same number of environments."""
        assert not self._sent, "load_state_dict between send and recv"
        self._shard.load_state_dicts(state["lanes"])

    def close(self) -> None:
        """Do nothing: the emulators are freed with this object."""
