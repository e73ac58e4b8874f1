"""Ctrl-C, kept from where it would do harm.

A package in C that is interrupted while it is imported may swallow that, and be broken from then on.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def interrupts_blocked() -> Iterator[None]:
    """Hold SIGINT back until the block ends; a process that is started inside is born deaf to it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
