"""Read the section [space] of a tune file: a dimension for each key, checked against the schema.

optimizer.learning_rate = { log = [1e-5, 1e-2] }
learner.discount        = { uniform = [0.9, 0.999] }
toggles.n_step          = { integer = [1, 10] }
toggles.prioritized     = { choice = [true, false] }
replay.alpha            = { uniform = [0.3, 0.9], when = { toggles.prioritized = true } }
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, get_args

from atari_dqn.formatting import setting
from atari_dqn.scale.tuning.space import Dimension, Kind, is_same, ordered
from atari_dqn.spec.check import canonical, entry_problem, show, value_problem
from atari_dqn.spec.constraints import AUTO
from atari_dqn.spec.digest import cannot_change_results
from atari_dqn.spec.errors import Fault
from atari_dqn.spec.keys import KEYS, SECTIONS, Key, Scalar, Values
from atari_dqn.spec.parse import Entry, table_entries
from atari_dqn.spec.suggest import did_you_mean

_KINDS: tuple[Kind, ...] = get_args(Kind)
_EXAMPLE = "{ log = [1e-5, 1e-2] }"
_NOUNS: dict[type[Scalar], str] = {int: "integers", float: "numbers", bool: "true and false", str: "words"}
_OTHER_PROTOCOL = "scores of different protocols cannot be compared"
_FIXED = {
    "game": "name the games at the top: game = [...]",
    "seed": "name the seeds at the top: seeds = 3",
    "learner.threads": "it only changes rounding; write threads at the top",
    "training.total_frames": "the scores of runs of different length cannot be compared",
    "env.kind": "scores of different environments cannot be compared",
    **dict.fromkeys(
        (
            "track",
            "env.sticky_probability",
            "env.flicker_probability",
            "env.noop_max_frames",
            "env.full_action_set",
            "env.frame_skip",
            "env.resize",
            "env.screen_size_pixels",
        ),
        _OTHER_PROTOCOL,
    ),
}
"""Keys that no trial may change, each with the reason."""


def read_space(path: Path, table: Mapping[str, Any]) -> tuple[dict[str, Dimension], list[Fault]]:
    """Return the dimensions of a tune file by key, and the faults of the others."""
    dimensions: dict[str, Dimension] = {}
    faults: list[Fault] = []
    entries = list(space_entries(path, table))
    if not entries and isinstance(table.get("space", {}), dict):
        faults.append(
            Fault(str(path), "space", f"has no key; expected keys as learner.batch_size = {_EXAMPLE}")
        )
    for entry in entries:
        problems = list(_problems(entry))
        if entry.key in dimensions:
            problems.append("is written twice, once by its former name; keep one of them")
        faults += [Fault(entry.where, entry.key, problem) for problem in problems]
        if not problems:
            dimensions[entry.key] = _dimension(entry)
    return dimensions, faults


def space_entries(path: Path, table: Mapping[str, Any]) -> Iterator[Entry]:
    """Yield the keys of the space with their dimensions as written."""
    found = table.get("space", {})
    for name, value in found.items() if isinstance(found, dict) else ():
        if name in KEYS:  # a key without a section, whose dimension is no section either
            yield Entry(name, value, f"{path} [space]")
        else:
            yield from table_entries({name: value}, where=f"{path} [space]")


def condition_faults(
    path: Path, dimensions: Mapping[str, Dimension], known: Collection[str], fixed: Values
) -> Iterator[Fault]:
    """Yield the faults of conditions. `known`: all keys of the space; `fixed`: the base spec."""
    where = f"{path} [space]"
    for key, dimension in dimensions.items():
        for other, allowed in dimension.when.items():
            problem = _condition_problem(key, other, allowed, dimensions, known, fixed)
            if problem is not None:
                yield Fault(where, key, f"when {other}: {problem}")
    inside = {key for key, each in dimensions.items() if set(each.when) <= dimensions.keys()}
    circle = inside - {each.key for each in ordered(dimensions)}
    if circle and all(set(dimensions[key].when) & circle for key in circle):
        yield Fault(
            where, "", f"the conditions of {', '.join(sorted(circle))} depend on each other in a circle"
        )


def _problems(entry: Entry) -> Iterator[str]:
    """Yield the faults of one dimension."""
    if entry.key not in KEYS:
        is_section = entry.key in SECTIONS
        problem = entry_problem(Entry(entry.key, 0, entry.where)) or ""
        yield f"has no key; expected keys, each as {_EXAMPLE}" if is_section else problem
        return
    reason = _FIXED.get(entry.key) or _outside(KEYS[entry.key])
    if reason is not None:
        yield f"cannot be searched: {reason}"
        return
    found = entry.value
    if not isinstance(found, dict):
        yield f"found {show(found)}, expected kind and values, as {_EXAMPLE}; write a fixed value in [set]"
        return
    for name in found:
        if name not in (*_KINDS, "when"):
            yield f"{name}: unknown key" + (
                did_you_mean(name, (*_KINDS, "when")) or f"; expected {_expected()}"
            )
    kinds = [kind for kind in _KINDS if kind in found]
    if len(kinds) != 1:
        yield f"found {' and '.join(kinds) or 'no kind'}, expected one of {_expected()}"
        return
    yield from _value_problems(KEYS[entry.key], kinds[0], found[kinds[0]])
    yield from _when_problems(entry.key, found.get("when", {}))


def _expected() -> str:
    return ", ".join(_KINDS)


def _outside(key: Key) -> str | None:
    if cannot_change_results(key.name) or key.section in ("checkpoint", "logging"):
        return "it cannot change what a run learns"
    return _OTHER_PROTOCOL if key.section == "evaluation" else None


def _value_problems(key: Key, kind: Kind, values: Any) -> Iterator[str]:
    """Yield the faults of the ends of a range, or of the list of a choice."""
    fitting = {float: ("uniform", "log", "choice"), int: ("integer", "log", "choice")}
    if kind not in fitting.get(key.kind, ("choice",)):
        expected = " or ".join(fitting.get(key.kind, ("choice",)))
        yield f"found {kind}, expected {expected} for {_NOUNS[key.kind]}"
        return
    if not isinstance(values, list) or not values:
        yield f"{kind}: found {'an empty list' if values == [] else show(values)}, expected a list of values"
        return
    wrong = [problem for value in values if (problem := value_problem(key, value)) is not None]
    yield from (f"{kind}: {problem}" for problem in dict.fromkeys(wrong))
    if wrong:
        return
    if kind == "choice":
        if key.auto and AUTO in values:
            yield "choice: cannot be searched as auto; name the values"
        if any(is_same(first, second) for first, second in combinations(values, 2)):
            yield "choice: names a value more than once"
        if len(values) == 1:
            yield f"choice: has a single value; write {key.name} = {show(values[0])} in [set]"
        return
    yield from _range_problems(kind, values)


def _range_problems(kind: Kind, values: Sequence[Any]) -> Iterator[str]:
    if len(values) != 2:
        yield f"{kind}: found {len(values)} values, expected two numbers, the lowest and the highest"
    elif not all(type(value) in (int, float) and math.isfinite(value) for value in values):
        yield f"{kind}: found {' to '.join(map(show, values))}, expected two finite numbers"
    elif not values[0] < values[1]:
        yield f"{kind}: found {setting(values[0])} to {setting(values[1])}, expected the lower number first"
    elif kind == "log" and values[0] <= 0:
        yield f"log: found the lowest value {setting(values[0])}, expected more than 0"


def _when_problems(key: str, found: Any) -> Iterator[str]:
    if not isinstance(found, dict):
        yield f"when: found {show(found)}, expected keys and values, as {{ toggles.prioritized = true }}"
        return
    for other, allowed in _conditions(found).items():
        if other not in KEYS:
            yield f"when {other}: {entry_problem(Entry(other, allowed[0] if allowed else 0, ''))}"
            continue
        if other == key:
            yield f"when {other}: a key cannot depend on itself"
        problems = (value_problem(KEYS[other], value) for value in allowed)
        yield from (f"when {other}: {problem}" for problem in dict.fromkeys(problems) if problem is not None)
        if not allowed:
            yield f"when {other}: found an empty list, expected a value or a list of values"


def _conditions(found: Mapping[str, Any]) -> dict[str, tuple[Any, ...]]:
    """Return the conditions by dotted key; TOML has a dotted key in quotes as a name, without as a table."""
    conditions: dict[str, tuple[Any, ...]] = {}
    for name, value in found.items():
        leaves = {f"{name}.{leaf}": each for leaf, each in value.items()} if isinstance(value, dict) else {}
        for key, allowed in (leaves or {name: value}).items():
            conditions[key] = tuple(allowed) if isinstance(allowed, list) else (allowed,)
    return conditions


def _condition_problem(
    key: str,
    other: str,
    allowed: Sequence[Scalar],
    dimensions: Mapping[str, Dimension],
    known: Collection[str],
    fixed: Values,
) -> str | None:
    """Describe why a condition of `key` on `other` can never hold; None if it can."""
    if other in dimensions:
        never = [value for value in allowed if not dimensions[other].contains(value)]
        return f"it is never {setting(never[0])}; the space has {dimensions[other]}" if never else None
    if other in known:
        return None  # its own faults are reported
    has = setting(fixed[other]) if other in fixed else "no value"
    if any(other in fixed and is_same(fixed[other], value) for value in allowed):
        return f"it is {has} in every trial; leave the condition out"
    return f"it has {has} in every trial, so that {key} never applies; search {other} too, or remove {key}"


def _dimension(entry: Entry) -> Dimension:
    """Build a dimension that has no faults."""
    key, found = KEYS[entry.key], entry.value
    kind = next(kind for kind in _KINDS if kind in found)
    when = {
        other: tuple(canonical(KEYS[other], value) for value in allowed)
        for other, allowed in _conditions(found.get("when", {})).items()
    }
    values = [canonical(key, value) for value in found[kind]]
    if kind == "choice":
        return Dimension(key=entry.key, kind=kind, choices=tuple(values), when=when)
    low, high = values
    assert isinstance(low, int | float), "the ends of a range are numbers"
    assert isinstance(high, int | float), "the ends of a range are numbers"
    return Dimension(key=entry.key, kind=kind, low=low, high=high, when=when)
