"""Isolate the errors of one run, so that the other runs are shown whatever its files hold."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from atari_dqn.errors import DamagedError, UserError
from atari_dqn.formatting import printable

T = TypeVar("T")

_MOST_CHARACTERS = 400


@dataclass(frozen=True)
class Unreadable:
    """A run, or a part of one, that cannot be read."""

    reason: str
    """One line without control characters."""


def attempt(action: Callable[[], T]) -> T | Unreadable:
    """Call a function that reads the files of a run; return its result, or `Unreadable` for any exception."""
    try:
        return action()
    except Exception as error:  # a file can be damaged in ways that raise any exception
        return Unreadable(_reason(error))


def decoder_message(error: ValueError) -> str:
    """Simplify the paths in an error message of msgspec: `expected int, got str at seed`."""
    text = re.sub(r" - at `\$\.?(.*?)`", r" at \1", str(error)).replace("`", "").removesuffix(" at ")
    return text if text[1:2].isupper() else text[:1].lower() + text[1:]


def _reason(error: Exception) -> str:
    text = printable(" ".join(str(error).split()))
    if isinstance(error, OSError) and error.strerror:
        text = printable(f"{os.fsdecode(error.filename or '')}: {error.strerror.lower()}")
    elif not isinstance(error, UserError | DamagedError):
        text = f"{type(error).__name__}: {text}"
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}…"
