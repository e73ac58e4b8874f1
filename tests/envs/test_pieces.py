"""Bytes of any size arrive whole through a pipe, and a wait for the other end has a limit."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import Pipe
from multiprocessing.connection import Connection

import pytest

from atari_dqn.envs.pieces import SilentError, receive_bytes, send_bytes
from atari_dqn.envs.silence import SilenceLimit

Ends = tuple[Connection, Connection]


@pytest.fixture
def ends() -> Iterator[Ends]:
    ours, theirs = Pipe()
    yield ours, theirs
    ours.close()
    theirs.close()


def limit(waits: int = 3) -> SilenceLimit:
    return SilenceLimit(
        lambda: False, most_waits=waits, waits_at_end=3, wait_seconds=0.05, resume=lambda: None
    )


@pytest.mark.parametrize("size", [0, 1, 5_000_000])
def test_bytes_arrive_whole(ends: Ends, size: int) -> None:
    data = os.urandom(size)
    with ThreadPoolExecutor(1) as pool:
        sent = pool.submit(send_bytes, ends[0], data, limit(100))
        assert receive_bytes(ends[1]) == data
        sent.result()


@pytest.mark.timeout(30)
def test_what_is_not_read_is_given_up(ends: Ends) -> None:
    with pytest.raises(SilentError, match="has not answered for 0 seconds"):
        send_bytes(ends[0], bytes(5_000_000), limit())


@pytest.mark.timeout(30)
def test_what_does_not_come_is_given_up(ends: Ends) -> None:
    os.write(ends[1].fileno(), (9).to_bytes(8, "big") + b"half")
    with pytest.raises(SilentError, match="has not answered for 0 seconds"):
        receive_bytes(ends[0], limit())


def test_a_closed_end_is_the_end_of_what_it_has_sent(ends: Ends) -> None:
    send_bytes(ends[1], b"last words")
    ends[1].close()
    assert receive_bytes(ends[0], limit()) == b"last words"
    with pytest.raises(EOFError):
        receive_bytes(ends[0], limit())
