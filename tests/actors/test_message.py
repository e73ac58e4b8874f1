"""Messages: what is decoded is what was encoded, and damaged bytes are refused."""

from dataclasses import fields, replace

import numpy as np
import pytest

from atari_dqn.actors.message import (
    _CHECKSUM,
    _HEAD_BYTES,
    _HEADER,
    FORMAT,
    Fragment,
    MessageError,
    _checksum,
    decode,
    encode,
)


def fragment(steps: int = 3, envs: int = 2, states: int = 1) -> Fragment:
    rng = np.random.Generator(np.random.PCG64(1))
    flags = {
        name: rng.random((steps, envs)) < 0.5 for name in ("terminated", "truncated", "life_lost", "first")
    }
    return Fragment(
        actor=3, incarnation=2, sequence=70_000, version=np.arange(steps),
        frame=rng.integers(256, size=(steps, envs, 5, 3), dtype=np.uint8),
        action=rng.integers(18, size=(steps, envs), dtype=np.int16),
        reward=rng.random((steps, envs), dtype=np.float32), **flags,
        state=rng.random((states, envs, 4), dtype=np.float32), state_rows=np.arange(states),
        priority=np.full((steps, envs), np.nan, dtype=np.float32), epsilon=rng.random(envs),
    )  # fmt: skip


@pytest.mark.parametrize("shape", [(3, 2, 1), (1, 1, 0), (7, 5, 7)])
def test_a_decoded_fragment_is_the_encoded_one(shape: tuple[int, int, int]) -> None:
    sent = fragment(*shape)
    found = decode(encode(sent))
    for field in fields(Fragment):
        expected, value = getattr(sent, field.name), getattr(found, field.name)
        np.testing.assert_array_equal(value, expected)
        assert np.asarray(value).dtype == np.asarray(expected).dtype


def test_decoded_columns_are_views_of_the_message() -> None:
    message = encode(fragment())
    assert np.shares_memory(decode(message).frame, np.frombuffer(message, np.uint8))


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (lambda message: message[:20], "found 20 bytes, a header has"),
        (lambda message: b"XXXX" + message[4:], "begins with b'XXXX'"),
        (
            lambda message: message[:4] + bytes([FORMAT + 1]) + message[5:],
            f"of format {FORMAT + 1}, expected",
        ),
        (lambda message: message[:-8], "found a body of"),
        (lambda message: message + b"\0", "found a body of"),
        (lambda message: message[:-9] + bytes([message[-9] ^ 1]) + message[-8:], "checksum"),
    ],
)
def test_damaged_messages_are_refused(damage, problem: str) -> None:
    with pytest.raises(MessageError, match=problem):
        decode(damage(encode(fragment())))


def test_every_flipped_byte_is_noticed() -> None:
    message = encode(fragment(1, 1))
    for place in range(len(message)):
        with pytest.raises(MessageError):
            decode(message[:place] + bytes([message[place] ^ 0x40]) + message[place + 1 :])


def test_columns_of_other_shapes_are_not_sent() -> None:
    with pytest.raises(MessageError, match=r"action: found shape \(3, 1\), expected \(3, 2\)"):
        encode(replace(fragment(), action=np.zeros((3, 1), dtype=np.int16)))


def test_a_compressed_fragment_is_decoded_as_the_plain_one() -> None:
    sent = fragment(7, 5, 3)
    message = encode(sent, compressed=True)
    for field in fields(Fragment):
        np.testing.assert_array_equal(getattr(decode(message), field.name), getattr(sent, field.name))


def test_frames_that_hardly_change_are_compressed_to_a_tenth() -> None:
    still = replace(fragment(50, 1), frame=np.full((50, 1, 84, 84), 87, dtype=np.uint8))
    assert 10 * len(encode(still, compressed=True)) < len(encode(still))


def with_checksum(message: bytes) -> bytes:
    """Return a message that was written wrongly, not damaged on its way: its checksum is right."""
    header, body = message[: _HEADER.size], message[_HEAD_BYTES:]
    return header + _CHECKSUM.pack(_checksum(header, body)) + body


@pytest.mark.parametrize(
    ("place", "value", "problem"),
    [(6, 2, "found compression 2"), (40, 4, "the shapes need"), (_HEAD_BYTES, 0, "cannot be decompressed")],
    ids=["compression", "number of steps", "body"],
)
def test_a_compressed_body_that_is_none_is_refused(place: int, value: int, problem: str) -> None:
    message = encode(fragment(), compressed=True)
    with pytest.raises(MessageError, match=problem):
        decode(with_checksum(message[:place] + bytes([value]) + message[place + 1 :]))


def test_every_flipped_byte_of_a_compressed_message_is_noticed() -> None:
    message = encode(fragment(1, 1), compressed=True)
    for place in range(len(message)):
        with pytest.raises(MessageError):
            decode(message[:place] + bytes([message[place] ^ 0x40]) + message[place + 1 :])
