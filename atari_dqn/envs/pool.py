"""Environments in worker processes over shared memory.

The memory is anonymous: its file is unlinked before a worker starts, so a crash leaves nothing behind.
Workers are spawned, not forked: they hold no copy of the parent's threads, locks or accelerator.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import select
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from multiprocessing.context import SpawnContext
from typing import Any

import numpy as np
from jaxtyping import Int64

from atari_dqn.envs.buffers import batch_bytes, batch_over
from atari_dqn.envs.inline import BuildShard
from atari_dqn.envs.processes import interrupts_blocked, parent_to_end_with
from atari_dqn.envs.worker import Command, SharedMemory, work
from atari_dqn.envs.worker_handle import GOODBYE_SECONDS, Worker, WorkerDiedError
from atari_dqn.errors import UserError
from atari_dqn.types import GameInfo, StateDict, StepBatch

__all__ = ["WorkerDiedError", "WorkerPool", "split_envs"]

_SILENT_WAITS = 60
"""Waits in a row without an answer, to a step that takes milliseconds, before a worker counts as lost.

Waits are counted, not time: a run that is suspended, or a laptop asleep, finds one wait over when it goes on.
"""
_LAST_WAITS = 5
"""The same once the run was asked to end: what does not answer by then is given up."""
_WAIT_SECONDS = 1.0


def split_envs(num_envs: int, workers: int) -> list[range]:
    """Split environments into consecutive ranges, one per worker, as even as possible, none empty."""
    workers = min(workers, num_envs)
    edges = [num_envs * index // workers for index in range(workers + 1)]
    return [range(begin, end) for begin, end in pairwise(edges)]


@contextmanager
def _within_limits(workers: int) -> Iterator[None]:
    """Turn a system's refusal of another process, pipe or mapping into the `UserError` that names the key."""
    try:
        yield
    except OSError as error:
        raise UserError(
            f"cannot start {workers} worker processes: {os.strerror(error.errno or 0).lower()}; "
            "lower system.workers, or raise the limit (ulimit -a shows it)"
        ) from error


def _start(context: SpawnContext, index: int, envs: range, arguments: tuple[Any, ...]) -> Worker:
    ours, theirs = context.Pipe()
    process = context.Process(
        target=work, args=(theirs, parent_to_end_with(), *arguments), name=f"lanes-{index}", daemon=True
    )
    with interrupts_blocked():  # a terminal tells the whole group; the parent decides
        process.start()
    theirs.close()
    return Worker(index=index, envs=envs, process=process, pipe=ours)


class _Patience:
    """Counts waits in a row without an answer."""

    def __init__(self, stop: Callable[[], bool], workers: Sequence[Worker]) -> None:
        self._stop, self._workers = stop, workers
        self.begin()

    def begin(self) -> None:
        """Count from 0: something was answered."""
        self._waits = self._last_waits = 0

    def ended(self) -> str | None:
        """Count a wait; return why it was one too many, or None to wait again."""
        self._waits += 1
        if self._stop():
            if not self._last_waits:
                for worker in self._workers:
                    worker.go_on()
            self._last_waits += 1
        if self._last_waits > _LAST_WAITS:
            return f"has not answered for {_LAST_WAITS * _WAIT_SECONDS:.0f} seconds after the run was to end"
        if self._waits == _SILENT_WAITS:
            return f"has not answered for {_SILENT_WAITS * _WAIT_SECONDS:.0f} seconds"
        return None


class WorkerPool:
    """Environments spread over worker processes; use `close` or `with`. Implements `types.Environments`.

    A worker that dies makes the call that waits for it raise `WorkerDiedError`; after that only `close` may
    be called.
    """

    def __init__(
        self, build_shard: BuildShard, *, num_envs: int, workers: int, frame_shape: tuple[int, int]
    ) -> None:
        context = multiprocessing.get_context("spawn")
        shared_frames = context.RawArray("B", batch_bytes(num_envs, frame_shape))
        shared_actions = context.RawArray("q", num_envs)
        shared_seconds = context.RawArray("d", workers)
        self._batch = batch_over(np.frombuffer(shared_frames, np.uint8), num_envs, frame_shape)
        self._actions = np.frombuffer(shared_actions, np.int64)
        self._busy_seconds = np.frombuffer(shared_seconds, np.float64)
        self._num_envs = num_envs
        self._workers: list[Worker] = []
        self._busy = False
        self._by_handle: dict[int, Worker] = {}
        self._poll = select.poll()
        self._stop: Callable[[], bool] = lambda: False
        # at exit, the interpreter waits for children; these would wait for it
        atexit.register(self.close)
        memory = SharedMemory(shared_frames, shared_actions, shared_seconds)
        try:
            with _within_limits(workers):
                for index, envs in enumerate(split_envs(num_envs, workers)):
                    arguments = (build_shard, index, envs, num_envs, memory)
                    self._watch(_start(context, index, envs, arguments))
            self._busy = True
            self._info: GameInfo = self._gather()[0]
        except BaseException:
            self.close()
            raise

    def _watch(self, worker: Worker) -> None:
        """Take a worker in; its pipe wakes `_gather` when it answers, its sentinel when it dies."""
        self._workers.append(worker)
        for handle in (worker.pipe.fileno(), worker.process.sentinel):
            self._by_handle[handle] = worker
            self._poll.register(handle, select.POLLIN)

    @property
    def info(self) -> GameInfo:
        """The game all environments play."""
        return self._info

    @property
    def num_envs(self) -> int:
        """E."""
        return self._num_envs

    @property
    def num_processes(self) -> int:
        """The workers."""
        return len(self._workers)

    @property
    def busy_seconds(self) -> float:
        """Time the workers spent playing steps so far, added up."""
        return float(self._busy_seconds.sum())

    def reset(self) -> StepBatch:
        """Begin a new episode on every environment."""
        self._tell(Command.RESET)
        self._gather()
        return self._batch

    def send(self, actions: Int64[np.ndarray, "E"]) -> None:
        """Begin one step on every environment and return at once."""
        assert actions.shape == self._actions.shape, f"expected {self._actions.shape}, got {actions.shape}"
        self._actions[:] = actions
        self._tell(Command.STEP)

    def recv(self) -> StepBatch:
        """Wait for the step that `send` began; `WorkerDiedError` if a worker is gone."""
        self._gather()
        return self._batch

    def check(self) -> None:
        """Raise `WorkerDiedError` if a worker has ended; called between steps, when no answer is awaited."""
        if self._busy or not self._workers:
            return
        for handle, _ in self._poll.poll(0):  # between steps a living worker sends nothing
            worker = self._by_handle[handle]
            raise worker.died(worker.how_it_ended())

    def stop_waiting_when(self, stop: Callable[[], bool]) -> None:
        """Wait only a few seconds more for workers that do not answer, once `stop()` is true.

        Those that were stopped (SIGSTOP) are continued then, so that their state can be saved.
        """
        self._stop = stop

    def state_dict(self) -> StateDict:
        """Return every environment's state."""
        self._tell(Command.GET_STATES)
        return {"lanes": [state for states in self._gather() for state in states]}

    def load_state_dict(self, state: StateDict) -> None:
        """Take over a state of as many environments, however they were spread."""
        states = state["lanes"]
        assert len(states) == self._num_envs, f"expected {self._num_envs} states, got {len(states)}"
        self._begin(Command.SET_STATES)
        for worker in self._workers:
            worker.tell(Command.SET_STATES, states[worker.envs.start : worker.envs.stop])
        self._gather()

    def _begin(self, command: Command) -> None:
        assert self._workers, "the pool is closed"
        assert not self._busy, f"{command.name} while a step is under way"
        self._busy = True

    def _tell(self, command: Command) -> None:
        self._begin(command)
        for worker in self._workers:
            worker.tell(command)

    def _gather(self) -> list[Any]:
        """Return each worker's answer, in order."""
        assert self._workers, "the pool is closed"
        assert self._busy, "recv without send"
        answers: dict[int, Any] = {}
        patience = _Patience(self._stop, self._workers)
        while len(answers) < len(self._workers):
            ready = self._poll.poll(_WAIT_SECONDS * 1000)
            if ready:
                patience.begin()
            elif reason := patience.ended():
                silent = next(worker for worker in self._workers if worker.index not in answers)
                raise silent.died(reason)
            for handle, _ in ready:
                worker = self._by_handle[handle]
                if worker.index in answers:  # it has no more to say: it is gone
                    raise worker.died(worker.how_it_ended())
                answers[worker.index] = worker.answer()
        self._busy = False
        return [answers[worker.index] for worker in self._workers]

    def close(self) -> None:
        """End the workers; safe to call twice."""
        atexit.unregister(self.close)
        workers, self._workers = self._workers, []
        for worker in workers:
            worker.pipe.close()
        deadline = time.monotonic() + GOODBYE_SECONDS
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
