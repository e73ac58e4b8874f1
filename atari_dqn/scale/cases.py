"""Read the cases of a sweep file: the combinations of its grid, and its explicit cases."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from atari_dqn.formatting import setting
from atari_dqn.spec.check import show
from atari_dqn.spec.errors import Fault
from atari_dqn.spec.parse import Entry, table_entries

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.=,+-]{0,79}", re.ASCII)
"""Names of methods and cases, which become parts of names of folders."""
MOST_CASES = 100_000


@dataclass(frozen=True, kw_only=True)
class Case:
    """A combination of values of the grid, or an explicit case, or both."""

    label: str
    """Empty if there is a single case."""
    entries: tuple[Entry, ...]


def read_cases(path: Path, table: Mapping[str, Any]) -> tuple[tuple[Case, ...], list[Fault]]:
    """Return every combination of an explicit case and a combination of the grid, and the faults of both."""
    explicit, faults = _explicit_cases(path, table.get("cases"))
    axes, grid_faults = _grid_axes(path, table)
    count = max(len(explicit), 1) * math.prod(map(len, axes))
    if count > MOST_CASES:
        problem = f"has {count:,} combinations; expected at most {MOST_CASES:,}"
        return (), [*faults, *grid_faults, Fault(str(path), "grid", problem)]
    combinations = [Case(label=_label(combination), entries=combination) for combination in product(*axes)]
    both = tuple(
        Case(
            label="_".join(filter(None, [first.label, second.label])),
            entries=(*first.entries, *second.entries),
        )
        for first in explicit
        for second in combinations
    )
    return both, [*faults, *grid_faults]


def _explicit_cases(path: Path, found: Any) -> tuple[list[Case], list[Fault]]:
    if found is None:
        return [Case(label="", entries=())], []
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        return [], [Fault(str(path), "cases", f"found {show(found)}, expected sections [[cases]]")]
    if not found:
        return [], [Fault(str(path), "cases", "is empty; expected at least one [[cases]]")]
    cases, faults = [], []
    for number, keys in enumerate(found, start=1):
        where = f"{path} [[cases]] {number}"
        entries = tuple(table_entries({k: v for k, v in keys.items() if k != "name"}, where=where))
        name = keys.get("name", _label(entries))
        if not isinstance(name, str) or not NAME.fullmatch(name):
            problem = f"found {show(name)}, expected letters, digits and _ . = , + -, at most 80"
            faults.append(Fault(where, "name", problem))
        else:
            cases.append(Case(label=name, entries=entries))
    return cases, faults


def _grid_axes(path: Path, table: Mapping[str, Any]) -> tuple[list[list[Entry]], list[Fault]]:
    """Return the entries of each axis of the grid."""
    axes, faults = [], []
    if table.get("grid") == {}:
        faults.append(Fault(str(path), "grid", "is empty; expected keys with lists of values"))
    for entry in section_entries(path, "grid", table):
        if not isinstance(entry.value, list) or not entry.value:
            found = "an empty list" if entry.value == [] else show(entry.value)
            faults.append(Fault(entry.where, entry.key, f"found {found}, expected a list of values"))
            continue
        if len(set(map(repr, entry.value))) < len(entry.value):
            faults.append(Fault(entry.where, entry.key, "names a value more than once"))
            continue
        axes.append([Entry(entry.key, value, entry.where) for value in entry.value])
    return axes, faults


def _label(entries: Sequence[Entry]) -> str:
    """Name a case by its values: `learning_rate=0.0001,batch_size=32`."""
    leaves = [entry.key.rpartition(".")[2] for entry in entries]
    keys = [
        entry.key if leaves.count(leaf) > 1 else leaf for entry, leaf in zip(entries, leaves, strict=True)
    ]
    texts = [_value_text(entry.value) for entry in entries]
    return ",".join(f"{key}={text}" for key, text in zip(keys, texts, strict=True))


def _value_text(value: Any) -> str:
    text = setting(value) if isinstance(value, bool) else str(value)
    return re.sub(r"[^A-Za-z0-9_.+-]", "-", text)[:40]


def section_entries(path: Path, place: str, table: Mapping[str, Any]) -> Iterator[Entry]:
    """Yield the entries of a section with keys of a spec."""
    found = table.get(place, {})
    if isinstance(found, dict):
        yield from table_entries(found, where=f"{path} [{place}]")
