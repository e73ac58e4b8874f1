"""Check each entry of a spec against the schema: its key, its type, its range."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from atari_dqn.spec.constraints import AUTO, AtMost
from atari_dqn.spec.errors import Fault
from atari_dqn.spec.history import original_name
from atari_dqn.spec.keys import KEYS, SECTIONS, Key, Scalar
from atari_dqn.spec.numbers import whole_number
from atari_dqn.spec.parse import Entry
from atari_dqn.spec.suggest import did_you_mean, did_you_mean_key

_LONGEST_SHOWN = 60
_LARGEST: dict[type[Scalar], AtMost] = {int: AtMost(2**63 - 1), float: AtMost(sys.float_info.max)}
"""The largest integers for a key of each type: the largest of TOML, and of those that become floats."""
_NOUNS: dict[type[Scalar], str] = {
    bool: "true or false",
    int: "an integer",
    float: "a number",
    str: "a string",
}


@dataclass(kw_only=True)
class Checked:
    """The valid values among some entries, and the faults of the others."""

    values: dict[str, Scalar] = field(default_factory=dict)
    """Valid values by dotted key."""
    where: dict[str, str] = field(default_factory=dict)
    """Where each of these values was written: a file, or `--set` or another place of overrides."""
    invalid: set[str] = field(default_factory=set)
    """Known keys that have an invalid value in at least one entry. They are not reported as missing too."""
    faults: list[Fault] = field(default_factory=list)


def check_entries(entries: Iterable[Entry]) -> Checked:
    """Check each entry separately. If a key is written in several places, its last value counts.

    Two values in one place are a fault: TOML allows them under a former and the current name of a key.
    """
    checked = Checked()
    for entry in entries:
        problem = entry_problem(entry) or _repetition(entry, checked.where)
        if problem is not None:
            checked.faults.append(Fault(entry.where, entry.key, problem))
        if entry.key not in KEYS:
            continue
        if problem is not None:
            checked.invalid.add(entry.key)
            continue
        checked.values[entry.key] = canonical(KEYS[entry.key], entry.value)
        checked.where[entry.key] = entry.where
    return checked


def _repetition(entry: Entry, where: Mapping[str, str]) -> str | None:
    """Describe the fault of a key that its file or table has twice; None if it has it once."""
    if entry.is_override or where.get(entry.key) != entry.where:
        return None
    return f"is written twice, also as {original_name(entry.key)}, its former name; keep one of them"


def entry_problem(entry: Entry) -> str | None:
    """Describe what is wrong with an entry; None if nothing is."""
    if entry.key in KEYS:
        return value_problem(KEYS[entry.key], entry.value)
    if entry.key in SECTIONS:
        is_empty = entry.value == {} and not entry.is_override
        return None if is_empty else f"found {show(entry.value)}, expected a section, its keys set one by one"
    return _unknown(entry)


def _unknown(entry: Entry) -> str:
    name = entry.key.replace('"', "")
    section = entry.key if isinstance(entry.value, dict) else entry.key.rpartition(".")[0]
    if entry.key == f'"{name}"' and name in KEYS:
        return f"unknown key; write {name} without quotes"
    if '"' in entry.key or not section or section in SECTIONS:
        return "unknown key" + did_you_mean_key(name, KEYS)
    return f"unknown section [{section}]" + (did_you_mean(section, SECTIONS) or did_you_mean_key(name, KEYS))


def value_problem(key: Key, value: Any) -> str | None:
    """Describe what was found and what was expected if the key does not allow `value`; None if it does."""
    if key.auto and value == AUTO:
        return None
    if not _has_kind(key, value) or not _in_range(key, value):
        return f"found {show(value)}, expected {expectation(key)}{_conversion_hint(key, value)}"
    if not _fits_type(key, value):
        limited = replace(key, bounds=(*key.bounds, _LARGEST[key.kind]))
        return f"found {show(value)}, expected {expectation(limited)}"
    if key.choices and not key.allows(value):
        return f"found {show(value)}, expected {expectation(key)}" + did_you_mean(value, _offered(key))
    return None


def _conversion_hint(key: Key, value: Any) -> str:
    """Return a hint if the value can be converted to an allowed one, as `True`, `"32"` and `3.0` can."""
    if isinstance(value, bool) or not isinstance(value, str | float):
        return ""
    converted = _convert(key.kind, str(value))
    if converted is None or not _has_kind(key, converted):
        return ""
    is_allowed = _in_range(key, converted) and _fits_type(key, converted)
    return f"; did you mean {show(converted)}?" if is_allowed else ""


def _convert(kind: type[Scalar], text: str) -> Scalar | None:
    if kind is bool:
        return {"true": True, "false": False}.get(text.lower())
    if kind is int:
        return whole_number(text)
    try:
        return float(text) if kind is float else None
    except ValueError:
        return None


def _has_kind(key: Key, value: Any) -> bool:
    return type(value) is key.kind or (key.kind is float and type(value) is int)


def _in_range(key: Key, value: Any) -> bool:
    return all(bound.holds(value) for bound in key.bounds)


def _fits_type(key: Key, value: Any) -> bool:
    """Return whether a value in the ranges of its key, if it is an integer, is within the key's type too."""
    return type(value) is not int or _LARGEST[key.kind].holds(value)


def canonical(key: Key, value: Any) -> Scalar:
    """Return a valid value in canonical form: an integer of a float key becomes a float, −0.0 becomes 0.0."""
    if key.kind is float and value != AUTO:
        return float(value) + 0.0
    scalar: Scalar = value
    return scalar


def expectation(key: Key) -> str:
    """Describe the values that a key allows, as the continuation of "expected …"."""
    if key.choices:
        return _one_of(_offered(key)) + _also(key)
    return resolved_expectation(key) + (f", or {show(AUTO)}" if key.auto else "")


def _offered(key: Key) -> tuple[str, ...]:
    return (*((AUTO,) if key.auto else ()), *key.choices, *key.added)


def resolved_expectation(key: Key) -> str:
    """Describe the values that a key allows in the spec of a run, where nothing is left to the machine."""
    if key.choices:
        return _one_of((*key.choices, *key.added)) + _also(key)
    return " ".join([_NOUNS[key.kind], " and ".join(str(bound) for bound in key.bounds)]).strip()


def _one_of(choices: tuple[str, ...]) -> str:
    return ("one of " if len(choices) > 1 else "") + ", ".join(map(show, choices))


def _also(key: Key) -> str:
    return f", or a name that an installed package adds, an entry point of {key.group}" if key.group else ""


def show(value: Any) -> str:
    """Format a value as in TOML, shortened; a table or an array is named instead."""
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        return "an array"
    text = json.dumps(value, ensure_ascii=False) if isinstance(value, bool | str) else str(value)
    return text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + "…"
