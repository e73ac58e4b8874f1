"""Parse spec files and overrides (`--set`) into entries, which are not checked against the schema yet."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from atari_dqn.spec.errors import Fault, SpecError
from atari_dqn.spec.history import current_name
from atari_dqn.spec.keys import KEYS
from atari_dqn.spec.kinds import Kind
from atari_dqn.spec.numbers import whole_number
from atari_dqn.spec.shipped import is_name, nearest

SET_OPTION = "--set"
"""The place of an override of the command line in error messages."""

_MAX_BYTES = 1_000_000  # far above the size of any spec
_ZIP_SIGNATURE = b"PK\x03\x04"
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_POSITION = re.compile(r"\(at (?:line (\d+), column \d+|end of document)\)$")
_NUMBER_VALUE = re.compile(r"=\s*([\d.,_]+[km]?)(?=\s*(?:#|$))", re.IGNORECASE)
_UNQUOTED = re.compile(r"=\s*[\"']?([A-Za-z](?:[\w ./-]*[\w./-])?)[\"']?(?=\s*(?:#|$))")
_DOTTED_NAME = r"((?:[\w.-]|\"[^\"]*\"|'[^']*')+)"
_HEADING = re.compile(rf"\s*\[\[?\s*{_DOTTED_NAME}\s*\]\]?\s*(?:#|$)")
_KEY = re.compile(rf"\s*{_DOTTED_NAME}\s*=")
_LONGEST_SHOWN = 60


@dataclass(frozen=True)
class Entry:
    """A key and its value as the user wrote them."""

    key: str
    """The dotted key, which the schema may not have."""
    value: Any
    """The value parsed as TOML, of any type."""
    where: str
    """The file, or for an override the option or argument that gave it, such as `--set`."""
    is_override: bool = False
    """Whether it replaces a value of a file. A key may be overridden several times."""


def read_toml(path: Path, kind: Kind = "spec") -> dict[str, Any]:
    """Parse the TOML file of a `kind`; `SpecError` if it is missing, cannot be read or is not TOML."""
    try:
        text = _decode(_read(path, kind), kind)
        try:
            return tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            problem = _syntax_problem(text, error)
        except ValueError:  # Python's limit on the digits of an integer
            problem = "contains a number with thousands of digits; expected a smaller one"
    except (OSError, ValueError, RecursionError) as error:
        problem = _read_problem(error)
    raise SpecError([Fault(str(path), "", problem)])


def _syntax_problem(text: str, error: tomllib.TOMLDecodeError) -> str:
    """Describe the line that is not TOML, with a suggestion if there is one."""
    lines = text.rstrip().split("\n")
    place = _POSITION.search(str(error))
    number = min(int(place[1]) if place and place[1] else len(lines), len(lines))
    # tomllib also rejects lines of correct syntax if they repeat a key or a section.
    if "twice" in str(error) or "overwrite" in str(error):
        return _repetition(lines[:number])
    line = lines[number - 1].strip()
    shown = line if len(line) <= _LONGEST_SHOWN else f"{line[:_LONGEST_SHOWN]}…"
    found = f"line {number} is not TOML: found `{shown}`"
    if _is_toml(line):
        return f"{found} before the end of the value above it; expected a bracket or quotes that close it"
    if _is_toml(mended := _as_toml(line)):
        return f"{found}, expected `KEY = VALUE` or `[SECTION]`; did you mean `{mended}`?"
    if _is_toml(mended := _UNQUOTED.sub(r'= "\1"', line)):
        return f"{found}, expected text in quotes; did you mean `{mended}`?"
    return f"{found}, expected `KEY = VALUE` or `[SECTION]`"


def _repetition(lines: Sequence[str]) -> str:
    """Describe how the last key or section of some lines repeats an earlier one."""
    *earlier, (number, name) = [(0, ""), *_names(lines)]
    same = [line for line, other in earlier if other == name]
    # tomllib rejects [a] after `a.b = …` as a repetition too
    within = [line for line, other in earlier if other.startswith(f"{name}.")]
    if not same and not within and number != len(lines):  # the patterns of `_names` missed the last line
        return f"line {len(lines)} repeats a key or a section; expected each once"
    before = f"line {(same or within)[-1]}" if same or within else "an earlier line"
    if _HEADING.match(lines[number - 1]):
        return f"line {number} repeats [{name}] of {before}; expected each section once: join the two"
    return f"line {number} repeats `{name}` of {before}; expected each key once: remove one of the two"


def _names(lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Yield the number of each line that gives a section or a key, with its dotted name."""
    section = ""
    for number, line in enumerate(lines, start=1):
        if heading := _HEADING.match(line):
            section = f"{heading[1]}."
            yield number, heading[1]
        elif key := _KEY.match(line):
            yield number, section + key[1]


def _is_toml(line: str) -> bool:
    try:
        tomllib.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def _as_toml(line: str) -> str:
    """Write booleans of Python and numbers such as `2.4M` in a line as TOML."""
    line = re.sub(r"=\s*(True|False)\b", lambda match: match[0].lower(), line)
    return _NUMBER_VALUE.sub(_as_integer, line)


def _as_integer(value: re.Match[str]) -> str:
    number = whole_number(value[1])
    return value[0] if number is None else f"= {number:_}"


def _read_problem(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "is nested too deeply; expected sections with keys, one level deep"
    if isinstance(error, OSError) and error.strerror:
        return f"cannot be read: {error.strerror.lower()}"
    return str(error)


def _read(path: Path, kind: Kind) -> bytes:
    if not path.exists():
        or_name = " or the name of a shipped one" if is_name(path) else ""
        raise ValueError(f"no such file; expected a TOML {kind}{or_name}{nearest(path)}")
    if path.is_dir():
        raise ValueError(f"is a directory; expected a TOML {kind}")
    if not path.is_file():
        raise ValueError(f"is not a regular file; expected a TOML {kind}")
    with path.open("rb") as file:
        data = file.read(_MAX_BYTES + 1)
    if data.startswith(_ZIP_SIGNATURE):
        raise ValueError(
            f"is a ZIP file, as archives by `dqn export` are; expected a TOML {kind}. "
            "`dqn import` unpacks an archive into a folder with its spec.toml"
        )
    if len(data) > _MAX_BYTES:
        raise ValueError(f"is larger than {_MAX_BYTES:,} bytes; expected a TOML {kind}")
    return data


def _decode(raw: bytes, kind: Kind) -> str:
    if not raw.strip():
        least = "at least track, game and seed" if kind == "spec" else f"the keys of a {kind}"
        raise ValueError(f"is empty; expected {least}")
    if 0 in raw:
        found = f"contains a NUL byte at offset {raw.index(0)}"
        raise ValueError(f"{found}; expected a TOML {kind}, which is text")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        found = f"byte {raw[error.start]:#04x} at offset {error.start}"
        raise ValueError(f"is not UTF-8 text ({found}); expected a TOML {kind}") from None


def table_entries(table: Mapping[str, Any], *, where: str) -> Iterator[Entry]:
    """Yield the entries of a spec's table: its top-level keys, and the keys of its sections, dotted."""
    for name, value in table.items():
        # an empty section is yielded as well, so that its name is checked
        if not isinstance(value, dict) or not value:
            yield Entry(_toml_key(name), value, where)
            continue
        for leaf, leaf_value in value.items():
            yield Entry(current_name(f"{_toml_key(name)}.{_toml_key(leaf)}"), leaf_value, where)


def override_entry(text: str, *, where: str = SET_OPTION) -> Entry:
    """Parse an override, `section.key=value`, into an entry.

    The value is TOML, or a string without quotes; a whole number may also be written as `2.4M` or `1e6`.
    `SpecError` if the key or the value is missing.
    """
    name, equals, value = text.partition("=")
    name, value = current_name(name.strip()), value.strip()
    if not equals or not name or not value:
        problem = f"found {text!r}, expected KEY=VALUE, such as learner.batch_size=64"
        raise SpecError([Fault(where, "", problem)])
    return Entry(name, _override_value(name, value), where, is_override=True)


def _override_value(name: str, text: str) -> Any:
    kind = KEYS[name].kind if name in KEYS else str
    if kind in (int, float) and (number := whole_number(text)) is not None:
        return kind(number)
    try:
        table = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    return table["value"] if list(table) == ["value"] else text


def _toml_key(name: str) -> str:
    """Write a key's name as TOML: quoted unless it is a bare key, to tell a dot in it from a separator."""
    return name if _BARE_KEY.fullmatch(name) else json.dumps(name)
