"""Read the values of a run's `spec.toml` without the schema, so that other versions may have other keys."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from atari_dqn.errors import DamagedError
from atari_dqn.files.documents import lowered, read_run_file
from atari_dqn.formatting import printable
from atari_dqn.spec.history import current_name
from atari_dqn.spec.keys import Scalar


def spec_values(path: Path) -> dict[str, Scalar]:
    """Return the values of a run's spec by dotted key, with the keys' current names and printable text.

    `DamagedError` if the file is not TOML, has a value that is not a number, a string or a boolean, or has a
    key under its current and a former name.
    """
    values: dict[str, Scalar] = {}
    for key, value in _scalars(_table(path), path):
        if key in values:
            raise DamagedError(f"{path}: {key}: found twice, under its current and a former name")
        values[key] = value
    return values


def _table(path: Path) -> dict[str, Any]:
    data = read_run_file(path)
    try:
        return tomllib.loads(data.decode())
    except RecursionError as error:
        raise DamagedError(f"{path}: is not TOML: it is nested too deeply") from error
    except ValueError as error:  # raised by tomllib and by decoding UTF-8
        raise DamagedError(f"{path}: is not TOML: {lowered(str(error))}") from error


def _scalars(table: Mapping[str, Any], path: Path) -> Iterator[tuple[str, Scalar]]:
    for name, value in table.items():
        entries = (
            [(current_name(f"{name}.{key}"), item) for key, item in value.items()]
            if isinstance(value, dict)
            else [(name, value)]
        )
        for key, item in entries:
            if not isinstance(item, bool | int | float | str):
                found = type(item).__name__
                expected = "a number, a string or a boolean"
                raise DamagedError(f"{path}: {printable(key)}: found {found}, expected {expected}")
            yield printable(key), printable(item) if isinstance(item, str) else item
