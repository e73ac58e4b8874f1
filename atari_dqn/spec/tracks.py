"""Load the tracks and the defaults of parts from the package's TOML files, checked like a user's spec."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

from atari_dqn.spec.check import check_entries
from atari_dqn.spec.completeness import key_faults
from atari_dqn.spec.errors import SpecError
from atari_dqn.spec.keys import KEYS, Scalar, Values
from atari_dqn.spec.parse import Entry, table_entries

ABSENT_FROM_TRACKS = frozenset({"game", "seed"})
"""Keys that tracks do not have: every spec gives them."""

_DATA = files("atari_dqn.spec")


@dataclass(frozen=True, kw_only=True)
class Part:
    """Default values of a part: where `key` is set to `value`, `values` replace the track's values."""

    key: str
    value: Scalar
    values: Values


@cache
def load_track(track: str) -> Values:
    """Load a track's values by dotted key: every key that applies except game and seed."""
    name = f"tracks/{track.lower()}.toml"
    return complete_track(tomllib.loads(_DATA.joinpath(name).read_text("utf-8")), where=name)


def complete_track(table: Mapping[str, Any], *, where: str) -> Values:
    """Return the values in a track's table; `SpecError` names each missing, invalid or unknown key."""
    checked = check_entries(table_entries(table, where=where))
    faults = [*checked.faults, *key_faults(checked, checked.values, where=where, absent=ABSENT_FROM_TRACKS)]
    if faults:
        raise SpecError(faults)
    return MappingProxyType(checked.values)


@cache
def load_parts() -> tuple[Part, ...]:
    """Load every part that has default values."""
    table = tomllib.loads(_DATA.joinpath("parts.toml").read_text("utf-8"))
    return tuple(_part(entry) for entry in table["part"])


def _part(table: Mapping[str, Any]) -> Part:
    chosen = Entry(table["key"], table["value"], "parts.toml")
    checked = check_entries([chosen, *table_entries(table["values"], where="parts.toml")])
    if checked.faults:
        raise SpecError(checked.faults)
    value = checked.values.pop(chosen.key)
    return Part(key=chosen.key, value=value, values=MappingProxyType(checked.values))


def override_track(track: Values, parts: tuple[Part, ...], written: Values) -> dict[str, Scalar]:
    """Override a track's values by the defaults of newly chosen parts, and both by the written values.

    A part is newly chosen if its key has another value in the track. Keys that do not apply are left out.
    """
    values = {**track, **written}
    for part in parts:
        if values.get(part.key) == part.value and track.get(part.key) != part.value:
            values.update({key: value for key, value in part.values.items() if key not in written})
    return {key: values[key] for key in KEYS if key in values and KEYS[key].applies(values)}
