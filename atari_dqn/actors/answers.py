"""Send and receive the answers of an actor in pieces, so that the wait for each piece has a limit.

    letter (1 byte)   length of the body (8 bytes)   body

`Connection.recv_bytes` would wait without limit for a sender that is suspended in the middle of an answer.
These functions use the file descriptor of the connection instead.
"""

from __future__ import annotations

import os
import struct
from multiprocessing.connection import Connection, wait

from atari_dqn.envs.silence import SilenceLimit

_HEADER = struct.Struct("!cQ")


class SilentError(Exception):
    """The rest of an answer has not come within the limit; the message says for how long."""


def send_answer(pipe: Connection, letter: bytes, body: bytes) -> None:
    """Send an answer; `OSError` if the other end is closed."""
    for part in (_HEADER.pack(letter, len(body)), body):
        left = memoryview(part)
        while left:
            left = left[os.write(pipe.fileno(), left) :]


def receive_answer(pipe: Connection, silence: SilenceLimit) -> tuple[bytes, bytes]:
    """Receive the letter and the body of an answer.

    `silence`: the limit on waits for a piece of it. `SilentError` beyond the limit, `EOFError` if the sender
    has closed its end.
    """
    letter, length = _HEADER.unpack(_received(pipe, _HEADER.size, silence))
    return letter, _received(pipe, length, silence)


def _received(pipe: Connection, length: int, silence: SilenceLimit) -> bytes:
    data = bytearray(length)
    left = memoryview(data)
    while left:
        while not wait([pipe], silence.wait_seconds):
            if reason := silence.exceeded():
                raise SilentError(reason)
        count = os.readv(pipe.fileno(), [left])
        if not count:
            raise EOFError
        left = left[count:]
        silence.reset()
    return bytes(data)
