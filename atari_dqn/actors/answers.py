"""Send answers through a pipe, and receive them piece by piece: their sender may stop in the middle.

    letter (1 byte)   length of the body (8 bytes)   body

`Connection.recv_bytes` would wait for the rest of an answer without limit. This works on the socket below it.
"""

from __future__ import annotations

import os
import select
import struct
from multiprocessing.connection import Connection

from atari_dqn.envs.silence import SilenceLimit

_HEADER = struct.Struct("!cQ")
_MOST_BYTES_AT_ONCE = 2**20


class SilentError(Exception):
    """The rest of an answer has not come within the limit; the message says for how long."""


def send_answer(pipe: Connection, letter: bytes, body: bytes) -> None:
    """Send an answer; `OSError` if the other end is closed."""
    left = memoryview(_HEADER.pack(letter, len(body)) + body)
    while left:
        left = left[os.write(pipe.fileno(), left[:_MOST_BYTES_AT_ONCE]) :]


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
        while not select.select([pipe], [], [], silence.wait_seconds)[0]:
            if reason := silence.exceeded():
                raise SilentError(reason)
        count = os.readv(pipe.fileno(), [left])
        if not count:
            raise EOFError
        left = left[count:]
        silence.reset()
    return bytes(data)
