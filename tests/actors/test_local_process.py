"""What the learner learns from an actor's process that ends, or does not read: all without starting one."""

from collections.abc import Iterator
from multiprocessing import Pipe
from multiprocessing.connection import Connection

import numpy as np
import pytest
from lockstep import lockstep

from atari_dqn.actors import carried
from atari_dqn.actors.carried import CarriedActors
from atari_dqn.actors.local_process import LocalProcess
from atari_dqn.actors.orders import ActorDiedError, ActorFailedError, Letter
from atari_dqn.envs.games import game_info
from atari_dqn.envs.pieces import send_bytes
from atari_dqn.envs.silence import SilenceLimit

ORDER = bytes(4 * 2**20)
"""More than the buffer of a pipe holds."""


class EndedProcess:
    """A process that has ended, or will end before anyone looks."""

    exitcode = 0

    def join(self, seconds: float) -> None:
        pass


class UnreadCarrier:
    """Starts actors that never read."""

    def __init__(self) -> None:
        self.ends: list[Connection] = []

    def start(self, number: int, incarnation: int) -> LocalProcess:
        ours, theirs = Pipe()
        self.ends += [ours, theirs]
        return LocalProcess(name=f"actor {number}", process=EndedProcess(), pipe=ours)  # type: ignore[arg-type]

    def end(self, actors: list[LocalProcess]) -> None:
        for end in self.ends:
            end.close()


@pytest.fixture
def actor() -> Iterator[tuple[LocalProcess, Connection]]:
    """An actor's process, and the end of the pipe that it has."""
    carrier = UnreadCarrier()
    process = carrier.start(0, 0)
    yield process, carrier.ends[1]
    carrier.end([process])


def limit() -> SilenceLimit:
    return SilenceLimit(lambda: False, most_waits=3, waits_at_end=3, wait_seconds=0.05, resume=lambda: None)


def fail(theirs: Connection) -> None:
    """Send an error and end, as an actor does that cannot be built."""
    send_bytes(theirs, Letter.FAILED + b"Traceback: no such game")
    theirs.close()


def test_the_error_of_an_actor_that_reads_no_order_is_raised(actor: tuple[LocalProcess, Connection]) -> None:
    process, theirs = actor
    fail(theirs)
    process.send(ORDER, limit())
    with pytest.raises(ActorFailedError, match="actor 0 failed:\nTraceback: no such game"):
        process.answer(limit())


def test_a_check_raises_the_error_that_an_ended_actor_has_sent(
    actor: tuple[LocalProcess, Connection],
) -> None:
    process, theirs = actor
    send_bytes(theirs, Letter.PLAY + b"a message")
    fail(theirs)
    with pytest.raises(ActorFailedError, match="Traceback: no such game"):
        process.check(limit())


def test_a_check_of_an_actor_that_ended_without_an_error_says_how(
    actor: tuple[LocalProcess, Connection],
) -> None:
    process, theirs = actor
    theirs.close()
    with pytest.raises(ActorDiedError, match="actor 0 ended with exit code 0"):
        process.check(limit())


@pytest.mark.timeout(30)
def test_actors_that_do_not_read_their_state_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(carried, "_SILENT_WAITS", 3)
    monkeypatch.setattr(carried, "_WAIT_SECONDS", 0.05)
    spec = lockstep(2)
    actors = CarriedActors(spec, game_info(spec), UnreadCarrier())
    with pytest.raises(ActorDiedError, match="actor 0 has not answered for 0 seconds"):
        actors.load_states([{"weights": np.frombuffer(ORDER, np.uint8)}] * 2)
    actors.close()
