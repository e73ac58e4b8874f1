"""From text to entries: spec files and `--set` options. What the entries mean is not looked at here."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from atari_dqn.spec.errors import Fault, SpecError
from atari_dqn.spec.suggest import did_you_mean

SET_OPTION = "--set"
"""Where an override stands, in error messages."""

_MAX_BYTES = 1_000_000  # far above any spec; what is larger is another kind of file, not worth reading
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_BARE_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_./+-]*")


@dataclass(frozen=True)
class Entry:
    """A value as the user wrote it."""

    key: str
    """Dotted, known or not."""
    value: Any
    """As TOML gives it: of any type."""
    where: str
    """The file, or `--set`."""


def read_toml(path: Path) -> dict[str, Any]:
    """Return a TOML file's table; `SpecError` if there is no such file or it is no TOML text."""
    try:
        return tomllib.loads(_decode(_read(path)))
    except tomllib.TOMLDecodeError as error:
        problem = f"is not TOML: {error}"
    except (OSError, ValueError, RecursionError) as error:
        problem = _reason(error)
    raise SpecError([Fault(str(path), "", problem)])


def _reason(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "is nested too deeply; a spec has sections and keys, one level"
    if isinstance(error, OSError) and error.strerror:
        return f"cannot be read: {error.strerror}"
    return str(error)


def _read(path: Path) -> bytes:
    if not path.exists():
        raise ValueError(f"no such file; expected a TOML spec{_nearest_file(path)}")
    if path.is_dir():
        raise ValueError("is a directory; expected a TOML spec")
    if not path.is_file():
        raise ValueError("is not a regular file; expected a TOML spec")
    if path.stat().st_size > _MAX_BYTES:
        raise ValueError(f"is larger than {_MAX_BYTES:,} bytes; expected a TOML spec")
    return path.read_bytes()


def _nearest_file(path: Path) -> str:
    neighbours = {neighbour.name: neighbour for neighbour in path.parent.glob("*.toml")}
    return did_you_mean(path.name, neighbours)


def _decode(raw: bytes) -> str:
    if not raw.strip():
        raise ValueError("is empty; expected at least track, game and seed")
    if 0 in raw:
        raise ValueError(f"holds a NUL byte at offset {raw.index(0)}; expected a TOML spec, which is text")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        found = f"byte {raw[error.start]:#04x} at offset {error.start}"
        raise ValueError(f"is not UTF-8 text ({found}); expected a TOML spec") from None


def table_entries(table: Mapping[str, Any], *, where: str) -> Iterator[Entry]:
    """Yield a spec's entries with dotted keys: top-level ones, and those one level down."""
    for name, value in table.items():
        if (
            not isinstance(value, dict) or not value
        ):  # an empty section is an entry too: its name may be wrong
            yield Entry(_shown(name), value, where)
            continue
        for leaf, leaf_value in value.items():
            yield Entry(f"{_shown(name)}.{_shown(leaf)}", leaf_value, where)


def override_entry(text: str) -> Entry:
    """Return the entry of a `--set` option, `section.key=value`.

    The value is TOML; a bare word is taken for a string. `SpecError` for anything else.
    """
    name, equals, value = text.partition("=")
    name, value = name.strip(), value.strip()
    if not equals or not name or not value:
        problem = f"expected KEY=VALUE, for example {SET_OPTION} learner.batch_size=64, found {text!r}"
        raise SpecError([Fault(SET_OPTION, "", problem)])
    return Entry(name, _override_value(name, value), SET_OPTION)


def _override_value(name: str, text: str) -> Any:
    try:
        table = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        if _BARE_WORD.fullmatch(text):
            return text
    else:
        if list(table) == ["value"]:
            return table["value"]
    raise SpecError([Fault(SET_OPTION, name, f"expected a TOML value or a bare word, found {text!r}")])


def _shown(name: str) -> str:
    """Return a key's name as a spec would write it: quoted unless it is bare, so that a dot in it shows."""
    return name if _BARE_KEY.fullmatch(name) else json.dumps(name)
