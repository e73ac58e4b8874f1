"""Check the arguments of public functions: paths and numbers."""

from __future__ import annotations

import math
from numbers import Integral, Real
from os import PathLike
from pathlib import Path

from atari_dqn.errors import UserError


def path_of(name: str, value: object, *, expected: str = "a path") -> Path:
    """Convert an argument to a path; `UserError` with its name for a value that is none."""
    if isinstance(value, str | PathLike):
        return Path(value)
    raise UserError(f"{name}: found {kind_of(value)}, expected {expected}")


def check_count(name: str, value: object) -> None:
    """Raise `UserError` unless an argument is None or a whole number of at least 1."""
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise UserError(f"{name}: found {value!r}, expected a whole number")
    if int(value) < 1:
        raise UserError(f"{name}: found {value}, expected at least 1")


def check_finite(name: str, value: object) -> None:
    """Raise `UserError` unless an argument is None or a finite number."""
    if value is not None and not (isinstance(value, Real) and math.isfinite(value)):
        raise UserError(f"{name}: found {value!r}, expected a finite number")


def kind_of(value: object) -> str:
    """Describe what an argument is, as the continuation of "found …"."""
    return "None" if value is None else f"an object of type {type(value).__name__}"
