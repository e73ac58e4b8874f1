"""JSON documents from disk, checked before they are trusted: their size, their depth, then their types."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec

from atari_dqn.errors import DamagedError, UserError
from atari_dqn.files import read_regular, reading

T = TypeVar("T")

MOST_BYTES = 2**24
"""Of a document that no specification bounds: some thousand evaluations' scores."""
_DEEPEST = 64
MOST_INT = 2**63 - 1
"""Of a count."""

Count = Annotated[int, msgspec.Meta(ge=0, le=MOST_INT)]
Number = float | Literal["nan", "inf", "-inf"]
"""As `files.plain` writes it: JSON has no word for these."""


def read_json(path: Path, *, most_bytes: int = MOST_BYTES) -> Any:
    """Return what a JSON file of a run holds; `DamagedError` names a file that is missing or holds none."""
    data = read_run_file(path, most_bytes=most_bytes)
    try:
        return parse_json(data)
    except ValueError as error:
        raise DamagedError(f"{path}: is not JSON: {error}") from error


def read_run_file(path: Path, *, most_bytes: int = MOST_BYTES) -> bytes:
    """Return the bytes of a file of a run; `DamagedError` where it is missing, large or no regular file."""
    with reading_of_run(path):
        return read_regular(path, most_bytes=most_bytes)


@contextmanager
def reading_of_run(path: Path) -> Iterator[None]:
    """Turn an `OSError` of the block, which reads a file of a run, into the error that names it.

    A `DamagedError` where the file is missing or no regular one, a `UserError` where the system refuses.
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
    """Return the value of a JSON text; `ValueError` for any other text, and for one nested too deeply."""
    try:
        value = json.loads(data)
        nested = is_nested_deeper(value, _DEEPEST)
        if b"\\u" in data and not nested:
            json.dumps(value, ensure_ascii=False).encode()  # half of a character cannot be written again
    except RecursionError:
        nested = True
    if nested:
        raise ValueError(f"it is nested deeper than {_DEEPEST} levels")
    return value


def is_nested_deeper(value: Any, levels: int) -> bool:
    """Return whether tables and lists lie within each other for more than so many levels."""
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
    """Return a value as a type that msgspec knows; `DamagedError` names file and key where it is none."""
    try:
        return msgspec.convert(value, expected, strict=True)
    except msgspec.ValidationError as error:
        problem, _, place = str(error).partition(" - at `$")
        where = ".".join(filter(None, [key, place.rstrip("`").removeprefix(".")]))
        raise DamagedError(f"{path}: {where or 'the document'}: {lowered(problem)}") from error


def check_types(path: Path, value: Any, expected: Any, *, key: str = "") -> None:
    """Raise a `DamagedError` that names file and key where a value is none of a type that msgspec knows."""
    checked(path, value, expected, key=key)


def lowered(problem: str) -> str:
    """Return a sentence of a library as the end of one of ours: its first letter small."""
    return problem[:1].lower() + problem[1:]
