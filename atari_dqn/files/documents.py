"""Read JSON documents and check their size, their nesting and their types before they are used."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec

from atari_dqn.errors import DamagedError, UserError
from atari_dqn.files.atomic import read_regular
from atari_dqn.files.failures import reading

T = TypeVar("T")

MOST_BYTES = 2**24
"""Default limit on the size of a document; the scores of a few thousand evaluations fit."""
_MOST_LEVELS = 64
MOST_INT = 2**63 - 1
"""Largest count."""

Count = Annotated[int, msgspec.Meta(ge=0, le=MOST_INT)]
Number = float | Literal["nan", "inf", "-inf"]
"""A number as `files.atomic.plain` writes it: NaN and infinities are strings."""


def read_json(path: Path, *, most_bytes: int = MOST_BYTES) -> Any:
    """Read a JSON file of a run; `DamagedError` if the file is missing or is not JSON."""
    data = read_run_file(path, most_bytes=most_bytes)
    try:
        return parse_json(data)
    except ValueError as error:
        raise DamagedError(f"{path}: is not JSON: {error}") from error


def read_run_file(path: Path, *, most_bytes: int = MOST_BYTES) -> bytes:
    """Read a file of a run; `DamagedError` if it is missing, too large or not a regular file."""
    with reading_of_run(path):
        return read_regular(path, most_bytes=most_bytes)


@contextmanager
def reading_of_run(path: Path) -> Iterator[None]:
    """Convert an `OSError` of the block, which reads a file of a run, into an error that names the file.

    `DamagedError` if the file is missing or not a regular file, `UserError` if the system refuses to read it.
    """
    try:
        with reading(path):
            yield
    except UserError as error:
        cause = error.__cause__
        if isinstance(cause, FileNotFoundError | NotADirectoryError):
            raise DamagedError(f"{path}: missing") from error
        if isinstance(cause, OSError) and cause.errno is None:
            raise DamagedError(f"{path}: cannot be read: {cause}") from error
        raise


def parse_json(data: bytes) -> Any:
    """Parse a JSON text; `ValueError` if it is not JSON or is nested too deeply."""
    try:
        value = json.loads(data)
        nested = is_nested_deeper(value, _MOST_LEVELS)
        if b"\\u" in data and not nested:
            json.dumps(value, ensure_ascii=False).encode()  # raises ValueError for a lone surrogate
    except RecursionError:
        nested = True
    if nested:
        raise ValueError(f"it is nested deeper than {_MOST_LEVELS} levels")
    return value


def with_infinity(value: T) -> T | float:
    """Convert an infinity, which `files.atomic.plain` writes as text, to a number; return other values."""
    return math.inf if value == "inf" else -math.inf if value == "-inf" else value


def is_nested_deeper(value: Any, levels: int) -> bool:
    """Return whether objects and lists are nested in more than `levels` levels."""
    level = [value]
    for _ in range(levels + 1):
        level = list(chain.from_iterable(_children(item) for item in level))
        if not level:
            return False
    return True


def _children(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def checked(path: Path, value: Any, expected: type[T], *, key: str = "") -> T:
    """Convert a value to a type that msgspec knows; `DamagedError` names file and key if it is invalid."""
    try:
        return msgspec.convert(value, expected, strict=True)
    except msgspec.ValidationError as error:
        problem, _, place = str(error).partition(" - at `$")
        where = ".".join(filter(None, [key, place.rstrip("`").removeprefix(".")]))
        raise DamagedError(f"{path}: {where or 'the document'}: {lowered(problem)}") from error


def check_types(path: Path, value: Any, expected: Any, *, key: str = "") -> None:
    """Raise a `DamagedError` that names file and key if a value is not of a type that msgspec knows."""
    checked(path, value, expected, key=key)


def lowered(problem: str) -> str:
    """Convert the first letter of a library's message to lower case, to continue a message of ours."""
    return problem[:1].lower() + problem[1:]
