"""What the C library is told about freed memory, by versions of it that refuse other values."""

import ctypes
import sys
from types import SimpleNamespace

import pytest

from atari_dqn.machine.allocator import keep_freed_memory

TRIM, MMAP = -1, -3
MIB = 2**20


def told(monkeypatch: pytest.MonkeyPatch, most: int) -> list[tuple[int, int]]:
    """Return what a library is told that takes mapping thresholds up to `most`."""
    calls: list[tuple[int, int]] = []

    def mallopt(parameter: int, value: int) -> int:
        calls.append((parameter, value))
        return int(parameter != MMAP or value <= most)

    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(ctypes, "CDLL", lambda name: SimpleNamespace(mallopt=mallopt))
    keep_freed_memory()
    return calls


def test_a_gigabyte_is_kept_where_the_library_allows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert told(monkeypatch, 2**40) == [(MMAP, 1024 * MIB), (TRIM, 1024 * MIB)]


def test_older_library_is_told_the_most_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert told(monkeypatch, 32 * MIB) == [(MMAP, 1024 * MIB), (MMAP, 32 * MIB), (TRIM, 1024 * MIB)]


def test_library_that_refuses_both_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    assert told(monkeypatch, 0) == [(MMAP, 1024 * MIB), (MMAP, 32 * MIB)]
