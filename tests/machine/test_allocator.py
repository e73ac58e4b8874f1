"""The settings of glibc's allocator, with versions of glibc that refuse some of them."""

import ctypes
import sys
from types import SimpleNamespace

import pytest

from atari_dqn.machine.allocator import keep_freed_memory

TRIM, MMAP = -1, -3
MIB = 2**20


def options_set(monkeypatch: pytest.MonkeyPatch, most: int) -> list[tuple[int, int]]:
    """Return the settings made in a library that accepts mapping thresholds up to `most`."""
    calls: list[tuple[int, int]] = []

    def mallopt(parameter: int, value: int) -> int:
        calls.append((parameter, value))
        return int(parameter != MMAP or value <= most)

    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(ctypes, "CDLL", lambda name: SimpleNamespace(mallopt=mallopt))
    keep_freed_memory()
    return calls


def test_glibc_keeps_a_gigabyte_if_it_accepts_the_value(monkeypatch: pytest.MonkeyPatch) -> None:
    assert options_set(monkeypatch, 2**40) == [(MMAP, 1024 * MIB), (TRIM, 1024 * MIB)]


def test_older_glibc_gets_the_largest_value_it_accepts(monkeypatch: pytest.MonkeyPatch) -> None:
    assert options_set(monkeypatch, 32 * MIB) == [(MMAP, 1024 * MIB), (MMAP, 32 * MIB), (TRIM, 1024 * MIB)]


def test_glibc_that_refuses_both_values_is_not_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    assert options_set(monkeypatch, 0) == [(MMAP, 1024 * MIB), (MMAP, 32 * MIB)]
