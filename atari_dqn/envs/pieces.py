"""Send and receive bytes through a pipe in pieces, so that the wait for each piece has a limit.

    length (8 bytes)   bytes

`Connection.send_bytes` and `recv_bytes` would wait without limit for a process that is suspended.
These functions use the socket of the connection instead.
"""

from __future__ import annotations

import select
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection

from atari_dqn.envs.silence import SilenceLimit

_LENGTH = struct.Struct("!Q")


class SilentError(Exception):
    """The other end has not read or sent the next piece within the limit; the message says for how long."""


def send_bytes(pipe: Connection, data: bytes, silence: SilenceLimit | None = None) -> None:
    """Send bytes; `OSError` if the other end is closed.

    `silence`: the limit on waits for the other end to read a piece of them, without which there is none.
    `SilentError` beyond the limit.
    """
    with _socket_of(pipe) as end:
        for part in (_LENGTH.pack(len(data)), data):
            left = memoryview(part)
            while left:
                try:
                    left = left[end.send(left, socket.MSG_DONTWAIT) :]
                except BlockingIOError:
                    _wait(end, select.POLLOUT, silence)


def receive_bytes(pipe: Connection, silence: SilenceLimit | None = None) -> bytes:
    """Receive what `send_bytes` has sent; `EOFError` or `OSError` if the other end is closed.

    `silence`: the limit on waits for a piece of it, as of `send_bytes`.
    """
    with _socket_of(pipe) as end:
        (length,) = _LENGTH.unpack(_received(end, _LENGTH.size, silence))
        return _received(end, length, silence)


def _received(end: socket.socket, length: int, silence: SilenceLimit | None) -> bytes:
    data = bytearray(length)
    left = memoryview(data)
    while left:
        try:
            count = end.recv_into(left, 0, socket.MSG_DONTWAIT)
        except BlockingIOError:
            _wait(end, select.POLLIN, silence)
            continue
        if not count:
            raise EOFError
        left = left[count:]
    return bytes(data)


@contextmanager
def _socket_of(pipe: Connection) -> Iterator[socket.socket]:
    """Use a connection as the socket that it is; no descriptor is opened, and none is closed."""
    end = socket.socket(fileno=pipe.fileno())
    try:
        yield end
    finally:
        end.detach()


def _wait(end: socket.socket, event: int, silence: SilenceLimit | None) -> None:
    """Wait until a piece can be sent or received; `SilentError` beyond the limit."""
    poll = select.poll()
    poll.register(end, event)
    while not poll.poll(None if silence is None else 1_000 * silence.wait_seconds):
        if silence is not None and (reason := silence.exceeded()):
            raise SilentError(reason)
    if silence is not None:
        silence.reset()
