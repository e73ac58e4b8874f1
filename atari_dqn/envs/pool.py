"""Environments in worker processes, which exchange frames and actions through shared memory.

The memory is anonymous: its file is unlinked before a worker starts, so that a crash leaves no file behind.
"""

from __future__ import annotations

import atexit
import multiprocessing
import select
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from jaxtyping import Int64

from atari_dqn.envs.buffers import batch_bytes, batch_in_memory
from atari_dqn.envs.processes import start_child, within_limits
from atari_dqn.envs.shard import BuildShard
from atari_dqn.envs.silence import SilenceLimit
from atari_dqn.envs.worker import Command, SharedMemory, work
from atari_dqn.envs.worker_handle import SHUTDOWN_SECONDS, Worker, WorkerDiedError
from atari_dqn.types import GameInfo, StateDict, StepBatch

__all__ = ["WorkerDiedError", "WorkerPool", "split_envs"]

_SILENT_WAITS = 60
"""Consecutive waits without an answer after which a worker is considered lost. A step takes milliseconds."""
_SILENT_WAITS_AT_END = 5
"""The same after the run was asked to end."""
_WAIT_SECONDS = 1.0
"""Duration of a wait."""


def split_envs(num_envs: int, workers: int) -> list[range]:
    """Split environments into consecutive, non-empty ranges of nearly equal length, one per worker."""
    workers = min(workers, num_envs)
    edges = [num_envs * index // workers for index in range(workers + 1)]
    return [range(begin, end) for begin, end in pairwise(edges)]


class WorkerPool:
    """Environments distributed over worker processes. Implements `Environments`; a context manager.

    If a worker process ends, the call that waits for it raises `WorkerDiedError`; after that, only `close`
    may be called.
    """

    def __init__(
        self, build_shard: BuildShard, *, num_envs: int, workers: int, frame_shape: tuple[int, int]
    ) -> None:
        context = multiprocessing.get_context("spawn")
        shared_frames = context.RawArray("B", batch_bytes(num_envs, frame_shape))
        shared_actions = context.RawArray("q", num_envs)
        shared_seconds = context.RawArray("d", workers)
        self._batch = batch_in_memory(np.frombuffer(shared_frames, np.uint8), num_envs, frame_shape)
        self._actions = np.frombuffer(shared_actions, np.int64)
        self._busy_seconds = np.frombuffer(shared_seconds, np.float64)
        self._num_envs = num_envs
        self._workers: list[Worker] = []
        self._busy = False
        self._by_handle: dict[int, Worker] = {}
        self._poll = select.poll()
        self._stop: Callable[[], bool] = lambda: False
        # at exit the interpreter joins its children, which would wait for commands for ever
        atexit.register(self.close)
        memory = SharedMemory(shared_frames, shared_actions, shared_seconds)
        try:
            with within_limits(f"{workers} worker processes", key="system.workers"):
                for index, envs in enumerate(split_envs(num_envs, workers)):
                    arguments = (build_shard, index, envs, num_envs, memory)
                    process, pipe = start_child(work, *arguments, name=f"environments-{index}")
                    self._register(Worker(index=index, envs=envs, process=process, pipe=pipe))
            self._busy = True
            self._info: GameInfo = self._receive_all()[0]
        except BaseException:
            self.close()
            raise

    def _register(self, worker: Worker) -> None:
        """Add a worker, and poll its pipe for answers and its sentinel for the end of the process."""
        self._workers.append(worker)
        for handle in (worker.pipe.fileno(), worker.process.sentinel):
            self._by_handle[handle] = worker
            self._poll.register(handle, select.POLLIN)

    @property
    def info(self) -> GameInfo:
        """Properties of the game."""
        return self._info

    @property
    def num_envs(self) -> int:
        """Number of environments, E."""
        return self._num_envs

    @property
    def num_processes(self) -> int:
        """Number of worker processes."""
        return len(self._workers)

    @property
    def busy_seconds(self) -> float:
        """Time spent in steps so far, summed over the workers."""
        return float(self._busy_seconds.sum())

    def reset(self) -> StepBatch:
        """Begin a new episode in every environment."""
        self._send_all(Command.RESET)
        self._receive_all()
        return self._batch

    def send(self, actions: Int64[np.ndarray, "E"]) -> None:
        """Begin one step of every environment and return at once."""
        assert actions.shape == self._actions.shape, f"expected {self._actions.shape}, got {actions.shape}"
        self._actions[:] = actions
        self._send_all(Command.STEP)

    def recv(self) -> StepBatch:
        """Wait for the step that `send` began, and return it; `WorkerDiedError` if a worker has ended."""
        self._receive_all()
        return self._batch

    def check(self) -> None:
        """Raise `WorkerDiedError` if a worker has ended; between `send` and `recv`, do nothing."""
        if self._busy or not self._workers:
            return
        for handle, _ in self._poll.poll(0):  # between steps a running worker sends nothing
            worker = self._by_handle[handle]
            raise worker.died_error(worker.exit_reason())

    def stop_waiting_when(self, stop: Callable[[], bool]) -> None:
        """Once `stop()` returns True, wait only a few more seconds for workers that do not answer.

        Workers that are stopped (SIGSTOP) are continued, so that their state can be saved.
        """
        self._stop = stop

    def state_dict(self) -> StateDict:
        """Return the state of every environment."""
        self._send_all(Command.GET_STATES)
        return {"lanes": [state for states in self._receive_all() for state in states]}

    def load_state_dict(self, state: StateDict) -> None:
        """Restore a state of the same number of environments, saved from any number of workers."""
        states = state["lanes"]
        assert len(states) == self._num_envs, f"expected {self._num_envs} states, got {len(states)}"
        self._begin(Command.SET_STATES)
        for worker in self._workers:
            worker.send(Command.SET_STATES)
            worker.send_argument(states[worker.envs.start : worker.envs.stop], self._silence_limit())
        self._receive_all()

    def _begin(self, command: Command) -> None:
        assert self._workers, "the pool is closed"
        assert not self._busy, f"{command.name} while a step is under way"
        self._busy = True

    def _send_all(self, command: Command) -> None:
        self._begin(command)
        for worker in self._workers:
            worker.send(command)

    def _receive_all(self) -> list[Any]:
        """Wait for an answer of each worker and return the answers, in the order of the workers."""
        assert self._workers, "the pool is closed"
        assert self._busy, "recv without send"
        answers: dict[int, Any] = {}
        silence = self._silence_limit()
        while len(answers) < len(self._workers):
            ready = self._poll.poll(silence.wait_seconds * 1000)
            if ready:
                silence.reset()
            elif reason := silence.exceeded():
                silent = next(worker for worker in self._workers if worker.index not in answers)
                raise silent.died_error(reason)
            for handle, _ in ready:
                worker = self._by_handle[handle]
                if worker.index in answers:  # a second event of the same worker means that it has ended
                    raise worker.died_error(worker.exit_reason())
                answers[worker.index] = worker.receive(silence)
        self._busy = False
        return [answers[worker.index] for worker in self._workers]

    def _silence_limit(self) -> SilenceLimit:
        # each emulator is loaded and played in turn, and cores may be shared with many others
        most_waits = _SILENT_WAITS + max(len(worker.envs) for worker in self._workers)
        return SilenceLimit(
            self._stop,
            most_waits=most_waits,
            waits_at_end=_SILENT_WAITS_AT_END,
            wait_seconds=_WAIT_SECONDS,
            resume=self._resume_workers,
        )

    def _resume_workers(self) -> None:
        for worker in self._workers:
            worker.resume()

    def close(self) -> None:
        """End the workers; may be called twice."""
        atexit.unregister(self.close)
        workers, self._workers = self._workers, []
        for worker in workers:
            worker.pipe.close()
        deadline = time.monotonic() + SHUTDOWN_SECONDS
        for worker in workers:
            worker.process.join(max(0.0, deadline - time.monotonic()))
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()
            worker.process.close()

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
