"""Whether one entry, by itself, is what the schema allows."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from atari_dqn.spec.errors import Fault
from atari_dqn.spec.keys import KEYS, SECTIONS, Key, Scalar
from atari_dqn.spec.numbers import whole_number
from atari_dqn.spec.parse import Entry
from atari_dqn.spec.suggest import did_you_mean, did_you_mean_key

_LONGEST_SHOWN = 60
_INT64_LIMIT = 2**63  # TOML's own range
_NOUNS: dict[type[Scalar], str] = {
    bool: "true or false",
    int: "an integer",
    float: "a number",
    str: "a string",
}


@dataclass(kw_only=True)
class Checked:
    """Entries sorted into those that can be used and those that cannot."""

    values: dict[str, Scalar] = field(default_factory=dict)
    where: dict[str, str] = field(default_factory=dict)
    spoiled: set[str] = field(default_factory=set)
    """Known keys that were once written with a value that cannot be used: neither given nor missing."""
    faults: list[Fault] = field(default_factory=list)


def check_entries(entries: Iterable[Entry]) -> Checked:
    """Check every entry by itself. Where a key is written twice, the later one counts."""
    checked = Checked()
    for entry in entries:
        problem = entry_problem(entry)
        if problem is not None:
            checked.faults.append(Fault(entry.where, entry.key, problem))
        if entry.key not in KEYS:
            continue
        if problem is not None:
            checked.spoiled.add(entry.key)
            continue
        checked.values[entry.key] = canonical(KEYS[entry.key], entry.value)
        checked.where[entry.key] = entry.where
    return checked


def entry_problem(entry: Entry) -> str | None:
    """Return what is wrong with an entry, or None."""
    if entry.key in KEYS:
        return value_problem(KEYS[entry.key], entry.value)
    if entry.key in SECTIONS:
        is_empty = entry.value == {}
        return None if is_empty else f"found {show(entry.value)}, expected a section, its keys set one by one"
    return _unknown(entry)


def _unknown(entry: Entry) -> str:
    name = entry.key.replace('"', "")
    section = entry.key if isinstance(entry.value, dict) else entry.key.rpartition(".")[0]
    if '"' in entry.key or not section or section in SECTIONS:
        return "unknown key" + did_you_mean_key(name, KEYS)
    return f"unknown section [{section}]" + (did_you_mean(section, SECTIONS) or did_you_mean_key(name, KEYS))


def value_problem(key: Key, value: Any) -> str | None:
    """Return what was found and what was expected if `value` is none the key may have, else None."""
    if not _has_kind(key, value) or not _in_range(key, value):
        return f"found {show(value)}, expected {expectation(key)}{_meant(key, value)}"
    if key.choices and not key.allows(value):
        return f"found {show(value)}, expected {expectation(key)}" + did_you_mean(value, key.choices)
    return None


def _meant(key: Key, value: Any) -> str:
    """Return a hint where the value stands for one of the key's kind: `True`, `"32"`, `3.0`."""
    if isinstance(value, bool) or not isinstance(value, str | float):
        return ""
    meant = _of_kind(key.kind, str(value))
    usable = meant is not None and _has_kind(key, meant) and _in_range(key, meant)
    return f"; did you mean {show(meant)}?" if usable else ""


def _of_kind(kind: type[Scalar], text: str) -> Scalar | None:
    if kind is bool:
        return {"true": True, "false": False}.get(text.lower())
    if kind is int:
        return whole_number(text)
    try:
        return float(text) if kind is float else None
    except ValueError:
        return None


def _has_kind(key: Key, value: Any) -> bool:
    if type(value) is int and abs(value) >= _INT64_LIMIT:
        return False
    return type(value) is key.kind or (key.kind is float and type(value) is int)


def _in_range(key: Key, value: Any) -> bool:
    return all(bound.holds(value) for bound in key.bounds)


def canonical(key: Key, value: Any) -> Scalar:
    """Return a value that passed `value_problem` in its one form: a float is a float, and −0.0 is 0.0."""
    if key.kind is float:
        return float(value) + 0.0
    scalar: Scalar = value
    return scalar


def expectation(key: Key) -> str:
    """Return what a key's value must be, as it completes "expected …"."""
    if key.choices:
        return ("one of " if len(key.choices) > 1 else "") + ", ".join(show(choice) for choice in key.choices)
    return " ".join([_NOUNS[key.kind], " and ".join(str(bound) for bound in key.bounds)]).strip()


def show(value: Any) -> str:
    """Return a value as TOML writes it, shortened; what cannot be a key's value is named by its kind."""
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        return "an array"
    text = json.dumps(value, ensure_ascii=False) if isinstance(value, bool | str) else str(value)
    return text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + "…"
