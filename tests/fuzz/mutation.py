"""Inputs by chance from those that are kept: for machines without a fuzzer that follows coverage."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

TOKENS = (
    b"null", b"true", b"\x9b",
    b"-1", b"1e999", b"9" * 40, b"NaN", b"[]", b"{}", b"[" * 70, b'""', b'"\\ud800"', b"\x00",
    b"\xff\xfe", b",",
    b"\n", b"../", b"0.5", b"18446744073709551616",
)  # fmt: skip


def mutated(kept: Sequence[bytes], seed: int) -> Iterator[bytes]:
    """Yield inputs without end, each some changes away from a kept one; the same for the same seed."""
    chance = random.Random(seed)
    while True:
        data = bytearray(chance.choice(kept))
        for _ in range(chance.randint(1, 4)):
            chance.choice((_flip, _cut, _put_token, _replace_value, _repeat))(data, chance)
        yield bytes(data)


def _flip(data: bytearray, chance: random.Random) -> None:
    if data:
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)


def _cut(data: bytearray, chance: random.Random) -> None:
    start = chance.randrange(len(data) + 1)
    del data[start : start + chance.randint(1, 16)]


def _put_token(data: bytearray, chance: random.Random) -> None:
    place = chance.randrange(len(data) + 1)
    data[place:place] = chance.choice(TOKENS)


def _replace_value(data: bytearray, chance: random.Random) -> None:
    """Put a token in the place of what stands between two marks of a document."""
    marks = [place for place, byte in enumerate(data) if byte in b":,[]{}=\n"]
    if len(marks) > 1:
        which = chance.randrange(len(marks) - 1)
        data[marks[which] + 1 : marks[which + 1]] = chance.choice(TOKENS)


def _repeat(data: bytearray, chance: random.Random) -> None:
    start = chance.randrange(len(data) + 1)
    part = data[start : start + chance.randint(1, 32)]
    data[start:start] = part * chance.randint(1, 8)
