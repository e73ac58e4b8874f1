"""The message of an actor: a fragment of T steps of its L environments, as bytes with a checksum.

    header   magic · format · compression · length of the body · actor, incarnation, sequence · shapes · CRC
    body     one column after the other, each padded to 8 bytes; compressed, all of this is a zstandard frame

Each frame is in the message once, as the emulator made it; the replay stacks them. H×W one frame, K recurrent
states of R numbers. Nothing is pickled, and nothing is read that the header does not describe.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import numpy as np
import zstandard
from jaxtyping import Bool, Float32, Float64, Int16, Int64, UInt8

MAGIC = b"DQNF"
FORMAT = 1
_PLAIN, _COMPRESSED = range(2)
_LEVEL = 1
"""Of zstandard: as quick as its negative levels, and smaller (docs/decisions/0076)."""
_HEADER = struct.Struct("<4sHH Q 3Q 6I")
_CHECKSUM = struct.Struct("<Q")
_HEAD_BYTES = _HEADER.size + _CHECKSUM.size
_ALIGNMENT_BYTES = 8
_COLUMNS = {
    "version": ("<i8", "T"),
    "frame": ("u1", "TLHW"),
    "action": ("<i2", "TL"),
    "reward": ("<f4", "TL"),
    "terminated": ("?", "TL"),
    "truncated": ("?", "TL"),
    "life_lost": ("?", "TL"),
    "first": ("?", "TL"),
    "state": ("<f4", "KLR"),
    "state_rows": ("<i8", "K"),
    "priority": ("<f4", "TL"),
    "epsilon": ("<f8", "L"),
}
"""Type and shape of each column, in the order of the body."""


class MessageError(ValueError):
    """Bytes that are not a message of this format, or that were damaged on their way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fragment:
    """T steps of L environments of one actor; row t is the result of action t (`types.StepBatch`).

    The first fragment of an incarnation also has the row of the reset, with `first` everywhere.
    """

    actor: int
    incarnation: int
    sequence: int
    """Number of the message in its incarnation."""
    version: Int64[np.ndarray, "T"]
    """Version of the weights that selected each row's actions."""
    frame: UInt8[np.ndarray, "T L H W"]
    action: Int16[np.ndarray, "T L"]
    reward: Float32[np.ndarray, "T L"]
    """Not clipped."""
    terminated: Bool[np.ndarray, "T L"]
    truncated: Bool[np.ndarray, "T L"]
    life_lost: Bool[np.ndarray, "T L"]
    first: Bool[np.ndarray, "T L"]
    state: Float32[np.ndarray, "K L R"]
    """The recurrent states before the frames on which the actions of some rows were selected."""
    state_rows: Int64[np.ndarray, "K"]
    """These rows."""
    priority: Float32[np.ndarray, "T L"]
    """The absolute error of the sample that a row completes; NaN where there is none."""
    epsilon: Float64[np.ndarray, "L"]


def encode(fragment: Fragment, *, compressed: bool = False) -> bytes:
    """Return a fragment as a message. What is sent to another process is compressed."""
    steps, envs, height, width = fragment.frame.shape
    states, _, numbers = fragment.state.shape
    sizes = {"T": steps, "L": envs, "H": height, "W": width, "K": states, "R": numbers}
    pieces: list[bytes] = []
    for name, dtype, shape, padding in _layout(sizes):
        column = np.ascontiguousarray(getattr(fragment, name), dtype=dtype)
        if column.shape != shape:
            raise MessageError(f"{name}: found shape {column.shape}, expected {shape}")
        pieces += [column.tobytes(), bytes(padding)]
    body = b"".join(pieces)
    if compressed:
        body = zstandard.compress(body, _LEVEL)
    numbering = fragment.actor, fragment.incarnation, fragment.sequence
    header = _HEADER.pack(MAGIC, FORMAT, int(compressed), len(body), *numbering, *sizes.values())
    return b"".join([header, _CHECKSUM.pack(_checksum(header, body)), body])


def decode(message: bytes) -> Fragment:
    """Return the fragment of a message; its columns are views of it, or of its body without compression.

    Raise `MessageError` for a wrong magic, format, length, checksum or shape.
    """
    if len(message) < _HEAD_BYTES:
        raise MessageError(f"found {len(message)} bytes, a header has {_HEAD_BYTES}")
    magic, version, compression, length, actor, incarnation, sequence, *sizes = _HEADER.unpack_from(message)
    if magic != MAGIC:
        raise MessageError(f"found a message that begins with {magic!r}, expected {MAGIC!r}")
    if version != FORMAT:
        raise MessageError(f"found a message of format {version}, expected {FORMAT}")
    header, body = memoryview(message)[: _HEADER.size], memoryview(message)[_HEAD_BYTES:]
    if length != len(body):
        raise MessageError(f"found a body of {len(body)} bytes, declared {length}")
    if _CHECKSUM.unpack_from(message, _HEADER.size) != (_checksum(header, body),):
        raise MessageError("the checksum is another one: the message was damaged on its way")
    layout = list(_layout(dict(zip("TLHWKR", sizes, strict=True))))
    body = _plain(
        body, compression, sum(_bytes(dtype, shape) + padding for _, dtype, shape, padding in layout)
    )
    columns: dict[str, np.ndarray] = {}
    begin = 0
    for name, dtype, shape, padding in layout:
        columns[name] = np.frombuffer(body, dtype, prod(shape), begin).reshape(shape)
        begin += columns[name].nbytes + padding
    return Fragment(actor=actor, incarnation=incarnation, sequence=sequence, **columns)


def _plain(body: memoryview, compression: int, expected: int) -> memoryview:
    """Return a body without its compression; `MessageError` if it has not the expected number of bytes."""
    if compression not in (_PLAIN, _COMPRESSED):
        raise MessageError(f"found compression {compression}, expected {_PLAIN} or {_COMPRESSED}")
    try:  # the declared size is checked before memory is taken for it
        found = zstandard.get_frame_parameters(body).content_size if compression else len(body)
        if found != expected:
            raise MessageError(f"found a body of {found} bytes, the shapes need {expected}")
        return memoryview(zstandard.decompress(body)) if compression else body
    except zstandard.ZstdError as error:
        raise MessageError(f"the body cannot be decompressed: {error}") from error


def _checksum(header: bytes | memoryview, body: bytes | memoryview) -> int:
    return zlib.crc32(body, zlib.crc32(header))


def _bytes(dtype: str, shape: tuple[int, ...]) -> int:
    return np.dtype(dtype).itemsize * prod(shape)


def _layout(sizes: dict[str, int]) -> Iterator[tuple[str, str, tuple[int, ...], int]]:
    """Yield name, type, shape and padding of each column."""
    for name, (dtype, letters) in _COLUMNS.items():
        shape = tuple(sizes[letter] for letter in letters)
        yield name, dtype, shape, -_bytes(dtype, shape) % _ALIGNMENT_BYTES
