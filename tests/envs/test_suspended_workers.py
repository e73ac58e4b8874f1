"""A worker that is suspended in the middle of an answer is given up, and continued once the run is to end."""

import os
import signal
from collections.abc import Iterator

import pytest
from playing import CATCH

from atari_dqn.envs.catch import CatchShard
from atari_dqn.envs.pool import WorkerDiedError, WorkerPool
from atari_dqn.envs.worker import Command

MANY_BYTES = 2**24
"""More than a pipe holds, so that the sender of as many waits for the receiver."""


class LargeStates(CatchShard):
    """An environment whose state is large."""

    def state_dicts(self) -> list[dict[str, bytes]]:
        return [{"state": b" " * MANY_BYTES}]


def large_states(*, envs: range) -> LargeStates:
    return LargeStates(
        game="catch", env=CATCH, envs=envs, num_envs=1, seed=1, stream="train", power_on_reset=False
    )


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> Iterator[WorkerPool]:
    """A pool of one worker, which waits for commands."""
    size = CATCH.screen_size_pixels
    with WorkerPool(large_states, num_envs=1, workers=1, frame_shape=(size, size)) as pool:
        monkeypatch.setattr("atari_dqn.envs.pool._WAIT_SECONDS", 0.05)  # not of its start
        yield pool


@pytest.fixture
def answering(pool: WorkerPool) -> WorkerPool:
    """A pool whose worker is suspended in the middle of its answer."""
    pool._send_all(Command.GET_STATES)
    assert pool._workers[0].pipe.poll(60)
    suspend(pool)
    return pool


def suspend(pool: WorkerPool) -> None:
    os.kill(pool._workers[0].process.pid, signal.SIGSTOP)


@pytest.mark.slow
def test_worker_that_is_suspended_within_an_answer_is_given_up(
    answering: WorkerPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("atari_dqn.envs.pool._SILENT_WAITS", 3)
    with pytest.raises(WorkerDiedError, match=r"worker 0 \(environments 0 to 0\) has not answered for"):
        answering._receive_all()


@pytest.mark.slow
def test_suspended_worker_that_does_not_read_its_states_is_given_up(
    pool: WorkerPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("atari_dqn.envs.pool._SILENT_WAITS", 3)
    suspend(pool)
    with pytest.raises(WorkerDiedError, match=r"worker 0 \(environments 0 to 0\) has not answered for"):
        pool.load_state_dict({"lanes": [{"state": b" " * MANY_BYTES}]})


@pytest.mark.slow
def test_worker_that_is_suspended_within_an_answer_is_continued_when_the_run_is_to_end(
    answering: WorkerPool,
) -> None:
    answering.stop_waiting_when(lambda: True)
    ((state,),) = answering._receive_all()
    assert len(state["state"]) == MANY_BYTES


@pytest.mark.slow
def test_worker_that_is_killed_within_an_answer_is_reported(answering: WorkerPool) -> None:
    answering._workers[0].process.kill()
    with pytest.raises(WorkerDiedError, match=r"worker 0 .* was killed by SIGKILL"):
        answering._receive_all()
