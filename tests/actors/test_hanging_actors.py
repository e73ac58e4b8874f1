"""Actors in lockstep that do not answer: they are given up, and soon once the run is to end."""

import os
import signal
import struct
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from lockstep import begun, lockstep, play
from tiny import CPU, tiny

from atari_dqn.actors.carried import CarriedActors
from atari_dqn.actors.local_process import start_process
from atari_dqn.actors.orders import ActorDiedError, Letter
from atari_dqn.actors.state_codec import encode_state
from atari_dqn.envs.games import game_info
from atari_dqn.envs.pieces import receive_bytes
from atari_dqn.envs.processes import end_with_parent
from atari_dqn.envs.silence import SilenceLimit
from atari_dqn.errors import InfrastructureError
from atari_dqn.machine.hardware import find_hardware
from atari_dqn.spec.schema import Spec
from atari_dqn.train import launch
from atari_dqn.train.build import local_actors

LOCKSTEP = ("env.num_envs=4", "actors.mode=lockstep", "actors.processes=2", "actors.fragment_steps=6")


class StoppedActor:
    """An actor that answers nothing until it is continued; then each answer is a state."""

    is_stopped = True

    def send(self, order: bytes, silence: SilenceLimit) -> None:
        pass

    def answer(self, silence: SilenceLimit) -> bytes:
        return encode_state({"step": 7})

    def resume(self) -> None:
        self.is_stopped = False


class HangingActor(StoppedActor):
    """An actor that does not answer, continued or not."""

    def resume(self) -> None:
        pass


class ScriptedCarrier:
    """Starts actors of one type, and counts the waits for their answers, which take no time."""

    def __init__(self, actor_type: type[StoppedActor]) -> None:
        self.actor_type, self.waits = actor_type, 0

    def start(self, number: int, incarnation: int) -> StoppedActor:
        return self.actor_type()

    def ready(self, actors: dict[int, StoppedActor], timeout_seconds: float) -> list[int]:
        self.waits += 1
        return [number for number, actor in actors.items() if not actor.is_stopped]

    def publish(self, *weights: object) -> None:
        pass

    def end(self, actors: list[StoppedActor]) -> None:
        pass


class InterruptedCarrier(ScriptedCarrier):
    """One at whose first wait the user presses Ctrl-C."""

    def ready(self, actors: dict[int, StoppedActor], timeout_seconds: float) -> list[int]:
        if not self.waits:
            signal.raise_signal(signal.SIGINT)
        return super().ready(actors, timeout_seconds)


def hanging(spec: Spec) -> CarriedActors[StoppedActor]:
    return CarriedActors(spec, game_info(spec), ScriptedCarrier(HangingActor))


def test_a_hanging_actor_is_given_up_after_two_minutes() -> None:
    with (
        begun(lockstep(2), hanging) as training,
        pytest.raises(ActorDiedError, match="actor 0 has not answered for 122 seconds"),
    ):
        next(training.iterations())
    assert training.envs.carrier.waits == 122


def test_a_hanging_actor_is_given_up_soon_when_the_run_is_to_end() -> None:
    with begun(lockstep(2), hanging) as training:
        training.envs.stop_waiting_when(lambda: True)
        with pytest.raises(ActorDiedError, match="actor 0 has not answered for 30 seconds after the run was"):
            next(training.iterations())
    assert training.envs.carrier.waits == 31


def test_an_actor_that_hangs_when_its_state_is_due_is_given_up_too() -> None:
    with begun(lockstep(2), hanging) as training:
        training.envs.stop_waiting_when(lambda: True)
        with pytest.raises(ActorDiedError, match="actor 0 has not answered for 30 seconds after the run was"):
            training.envs.states()


def test_stopped_actors_are_continued_when_the_run_is_to_end() -> None:
    spec = lockstep(2)
    actors = CarriedActors(spec, game_info(spec), ScriptedCarrier(StoppedActor))
    actors.stop_waiting_when(lambda: True)
    assert actors.states() == [{"step": 7}, {"step": 7}]
    actors.close()


@pytest.mark.slow
def test_a_stopped_process_of_an_actor_is_continued() -> None:
    with begun(lockstep(1), local_actors) as training:
        play(training, 1)
        os.kill(training.envs.actors[0].process.pid, signal.SIGSTOP)
        training.envs.stop_waiting_when(lambda: True)
        assert len(play(training, 1)) == 1


def answer_half(pipe: Connection, parent: int | None) -> None:
    """Send the beginning of an answer, stop until continued, and send the rest."""
    end_with_parent(parent)
    receive_bytes(pipe)
    answer = struct.pack("!Q", 9) + Letter.PLAY + b"the rest"
    os.write(pipe.fileno(), answer[:12])
    os.kill(os.getpid(), signal.SIGSTOP)
    os.write(pipe.fileno(), answer[12:])


class HalfAnswer:
    """A process that is stopped within its answer, and whether it was continued."""

    def __init__(self) -> None:
        self.process = start_process("actor 0", answer_half)

    def answer(self, *, resume: Callable[[], None]) -> bytes:
        silence = SilenceLimit(lambda: True, most_waits=9, waits_at_end=3, wait_seconds=0.05, resume=resume)
        self.process.send(b"play", silence)
        assert self.process.pipe.poll(60)
        return self.process.answer(silence)


@pytest.fixture
def half_answer() -> Iterator[HalfAnswer]:
    found = HalfAnswer()
    yield found
    found.process.end()


@pytest.mark.slow
def test_an_actor_that_is_stopped_within_an_answer_is_given_up(half_answer: HalfAnswer) -> None:
    with pytest.raises(ActorDiedError, match="actor 0 has not answered for 0 seconds after the run was"):
        half_answer.answer(resume=lambda: None)


@pytest.mark.slow
def test_an_actor_that_is_stopped_within_an_answer_is_continued(half_answer: HalfAnswer) -> None:
    assert half_answer.answer(resume=half_answer.process.resume) == b"the rest"


def test_an_interruption_says_what_is_saved_where_an_actor_hangs(tmp_path: Path) -> None:
    def interrupted(spec: Spec) -> CarriedActors[StoppedActor]:
        return CarriedActors(spec, game_info(spec), InterruptedCarrier(HangingActor))

    origin = launch.Origin(command_line=["dqn", "train"], hardware=find_hardware(tmp_path))
    with pytest.raises(InfrastructureError, match=r"actor 0 .* the run was to end; .* nothing was saved"):
        launch.start(
            tiny(*LOCKSTEP), tmp_path / "run", device=CPU, views=[], origin=origin, make_actors=interrupted
        )
