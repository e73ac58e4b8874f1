"""Actors that end are started again; if they do nothing but end, the run ends, with the last reason."""

import errno
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import islice

import numpy as np
import pytest
from lockstep import lockstep
from test_free_running import free

from atari_dqn.actors.orders import ActorDiedError, Order
from atari_dqn.actors.supervised import SupervisedActors, actors_of
from atari_dqn.envs.games import game_info
from atari_dqn.envs.silence import SilenceLimit
from atari_dqn.errors import UserError


class ScriptedActor:
    """An actor that sends a message or ends, whichever is next in its script; at last it ends."""

    def __init__(self, script: list[str]) -> None:
        self._script = script

    def send(self, order: bytes, silence: SilenceLimit) -> None:
        if self._script[:1] == ["does not read"]:
            self._script.pop(0)
            raise ActorDiedError("an actor has not answered for 121 seconds")

    def answer(self, silence: SilenceLimit) -> bytes:
        step = self._script.pop(0) if self._script else "ends"
        if step == "ends":
            raise ActorDiedError("an actor ended with exit code 1")
        return step.encode()


class ScriptedCarrier:
    """Starts the actors of a script; a start that `refuses` the number of starts so far is an `OSError`."""

    def __init__(self, *script: str, refuses: Callable[[int], bool] = lambda starts: False) -> None:
        self.script, self.refuses = list(script), refuses
        self.starts = 0

    def start(self, number: int, incarnation: int) -> ScriptedActor:
        self.starts += 1
        if self.refuses(self.starts - 1):
            raise OSError(errno.EMFILE, "Too many open files")
        return ScriptedActor(self.script)

    def ready(self, actors: dict[int, ScriptedActor], timeout_seconds: float) -> list[int]:
        return list(actors)

    def steps_played(self, number: int) -> int:
        return 0

    def end(self, actors: list[ScriptedActor]) -> None:
        pass


@pytest.fixture(scope="module")
def info():
    return game_info(free(2))


@pytest.fixture
def minutes(info) -> Iterator[Callable[[ScriptedCarrier], Iterator[bytes | None]]]:
    """Return a function that receives from two actors once a minute, so that each restart is due."""

    def receive(carrier: ScriptedCarrier) -> Iterator[bytes | None]:
        clock = [0.0]
        with closing(SupervisedActors(free(2), info, carrier, now=lambda: clock[0])) as actors:
            while True:
                clock[0] += 60.0
                actors.started()
                yield actors.receive(0.0)

    return receive


def test_actors_that_do_nothing_but_end_end_the_run(minutes) -> None:
    found = minutes(ScriptedCarrier())
    assert [next(found) for _ in range(15)] == [None] * 15
    with pytest.raises(ActorDiedError, match="exit code 1; actors have ended 16 times in a row without a me"):
        next(found)


def test_an_actor_that_does_not_read_its_orders_is_started_again(info) -> None:
    clock, carrier = [0.0], ScriptedCarrier("message", "does not read", "message of the first")
    with closing(SupervisedActors(free(2), info, carrier, now=lambda: clock[0])) as actors:
        actors.started()
        assert actors.receive(0.0) == b"message"  # and the next actor's is there
        actors.order(1, Order(epsilon=np.zeros(2), least_version=0))
        assert actors.records[1].last_error == "an actor has not answered for 121 seconds"
        assert actors.receive(0.0) == b"message of the first"
        clock[0] = 1.0
        assert actors.started() == [1]


def test_a_message_begins_the_count_of_ends_anew(minutes) -> None:
    found = minutes(ScriptedCarrier(*["ends"] * 15, "message"))
    assert [next(found) for _ in range(31)].count(None) == 30
    with pytest.raises(ActorDiedError, match="ended 16 times in a row"):
        next(found)


def test_restarts_that_the_system_refuses_are_ends(minutes) -> None:
    found = minutes(ScriptedCarrier(refuses=lambda starts: starts >= 2))
    with pytest.raises(ActorDiedError, match=r"actor \d could not be started: .*Too many open files; .* 16 "):
        list(islice(found, 40))


def test_a_refused_restart_is_repeated_after_a_time_that_doubles(info) -> None:
    clock, starts = [0.0], []
    carrier = ScriptedCarrier(refuses=lambda count: starts.append(clock[0]) or count >= 1)
    with closing(SupervisedActors(free(1), info, carrier, now=lambda: clock[0])) as actors:
        actors.started()
        actors.receive(0.0)
        for step in range(1, 16):
            clock[0] = step / 16
            actors.started()
    assert starts == [0.0, 0.125, 0.375, 0.8125]


@pytest.mark.parametrize("spec", [free(2), lockstep(2)], ids=["free-running", "lockstep"])
def test_actors_that_the_system_does_not_start_are_an_error_that_names_the_key(info, spec) -> None:
    carrier = ScriptedCarrier(refuses=lambda starts: starts == 1)
    with (
        pytest.raises(UserError, match=r"2 actors: too many open files; lower actors\.processes"),
        closing(actors_of(spec, info, carrier)) as actors,
    ):
        actors.started()
