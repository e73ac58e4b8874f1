"""The evaluator's process plays what the learner would play, and is started again when it ends."""

import errno
import os
import signal
import time
from collections.abc import Iterator
from contextlib import closing

import numpy as np
import pytest
from tiny import tiny_spec

from atari_dqn.actors.orders import ActorDiedError
from atari_dqn.actors.weights import FlatWeights
from atari_dqn.assembly.parts import initial_network
from atari_dqn.envs.games import game_info
from atari_dqn.envs.silence import SilenceLimit
from atari_dqn.evaluation import evaluator as evaluator_module
from atari_dqn.evaluation.evaluate import evaluate
from atari_dqn.evaluation.evaluator import MOST_ENDS, Evaluator
from atari_dqn.evaluation.evaluator_process import Games

SPEC = tiny_spec()
INFO = game_info(SPEC)
EPISODES = 4


class Ends:
    """Keeps the reasons for which the process ended."""

    def __init__(self) -> None:
        self.reasons: list[str] = []

    def __call__(self, reason: str, restarts: int) -> None:
        self.reasons.append(reason)
        assert restarts == len(self.reasons)


class SilentProcess:
    """A process that does not read its order."""

    def send(self, order: bytes, silence: SilenceLimit) -> None:
        raise ActorDiedError("the evaluator has not answered for 30 seconds")

    @property
    def process(self) -> "SilentProcess":
        return self

    def resume(self) -> None:
        pass

    def kill(self) -> None:
        pass

    def end(self) -> None:
        pass


def weights() -> tuple[object, np.ndarray]:
    network = initial_network(SPEC, INFO, "evaluator")
    return network, FlatWeights(network).read()


@pytest.fixture
def ends() -> Ends:
    return Ends()


@pytest.fixture
def evaluator(ends: Ends) -> Iterator[Evaluator]:
    with closing(Evaluator(SPEC, INFO, episodes=EPISODES, on_end=ends)) as made:
        yield made


def wait_for(evaluator: Evaluator, seconds: float = 60.0) -> Games:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if (games := evaluator.games(0.1)) is not None:
            return games
    raise TimeoutError


@pytest.mark.slow
def test_its_scores_are_those_of_the_learner(evaluator: Evaluator) -> None:
    network, flat = weights()
    evaluator.order(7, flat)
    assert wait_for(evaluator) == evaluate(network, SPEC, episodes=EPISODES)


@pytest.mark.fault("M07")
@pytest.mark.slow
def test_killed_it_plays_the_same_evaluation_again(evaluator: Evaluator, ends: Ends) -> None:
    network, flat = weights()
    evaluator.order(7, flat)
    assert evaluator.process is not None
    os.kill(evaluator.process.process.pid or 0, signal.SIGKILL)
    assert wait_for(evaluator) == evaluate(network, SPEC, episodes=EPISODES)
    assert ends.reasons == ["the evaluator was killed by SIGKILL"]


def test_it_is_started_again_a_while_after_it_has_ended(monkeypatch: pytest.MonkeyPatch, ends: Ends) -> None:
    now, started = [0.0], []
    monkeypatch.setattr(
        evaluator_module, "start_process", lambda *_: started.append(now[0]) or SilentProcess()
    )
    made = Evaluator(SPEC, INFO, episodes=EPISODES, on_end=ends, now=lambda: now[0])
    made.order(0, weights()[1])
    for now[0] in np.arange(0.0, 0.5, 0.0625).tolist():
        made.games(0.0)
    assert started == [0.0, 0.125, 0.375]


def test_a_start_that_the_system_refuses_is_tried_again(monkeypatch: pytest.MonkeyPatch, ends: Ends) -> None:
    now = [0.0]

    def refuse(*_: object) -> None:
        raise BlockingIOError(errno.EAGAIN, "no more processes")

    monkeypatch.setattr(evaluator_module, "start_process", refuse)
    made = Evaluator(SPEC, INFO, episodes=EPISODES, on_end=ends, now=lambda: now[0])
    made.order(0, weights()[1])
    now[0] = 0.125
    made.games(0.0)
    assert ends.reasons == ["the evaluator could not be started: [Errno 11] no more processes"] * 2


def test_one_that_ends_again_and_again_ends_the_run(monkeypatch: pytest.MonkeyPatch, ends: Ends) -> None:
    now = [0.0]
    monkeypatch.setattr(evaluator_module, "start_process", lambda *_: SilentProcess())
    made = Evaluator(SPEC, INFO, episodes=EPISODES, on_end=ends, now=lambda: now[0])
    made.order(0, weights()[1])
    for now[0] in range(60, 60 * (MOST_ENDS - 1), 60):
        made.games(0.0)
    now[0] = 1000.0
    with pytest.raises(ActorDiedError, match="for 30 seconds; it has ended 5 times in one evaluation"):
        made.games(0.0)


def test_ends_in_earlier_evaluations_do_not_count(monkeypatch: pytest.MonkeyPatch, ends: Ends) -> None:
    now = [0.0]
    monkeypatch.setattr(evaluator_module, "start_process", lambda *_: SilentProcess())
    made = Evaluator(SPEC, INFO, episodes=EPISODES, on_end=ends, now=lambda: now[0])
    for version in range(MOST_ENDS):
        now[0] += 60.0
        made.order(version, weights()[1])
    assert len(ends.reasons) == MOST_ENDS
