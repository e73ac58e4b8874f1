"""Recognise specs, sweep files and tune files, so that each is for its own command."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Literal, get_args

from atari_dqn.spec.errors import Fault, SpecError
from atari_dqn.spec.shipped import is_name, shipped_specs, shipped_sweeps, shipped_tunes

Kind = Literal["spec", "sweep", "tune"]
_KINDS: tuple[Kind, ...] = get_args(Kind)
_OWN_KEYS: Mapping[Kind, frozenset[str]] = {
    "spec": frozenset({"track"}),
    "sweep": frozenset({"methods", "grid", "cases"}),
    "tune": frozenset({"space", "objective"}),
}
"""Keys at the top that files of one kind alone have."""
_BASE = "spec"
"""The key that names the base of a sweep or a tune, and that a spec does not have."""
_USES: Mapping[Kind, tuple[str, str]] = {
    "spec": ("a spec", "train it with `dqn train"),
    "sweep": ("a sweep file", "train it with `dqn sweep"),
    "tune": ("a tune file", "search with it by `dqn tune"),
}
_SHIPPED: Mapping[Kind, Callable[[], Mapping[str, Path]]] = {
    "spec": shipped_specs,
    "sweep": shipped_sweeps,
    "tune": shipped_tunes,
}


def check_kind(expected: Kind, path: Path, keys: Collection[str]) -> None:
    """Raise `SpecError` if the keys at the top of a file show that it is of another kind than expected."""
    possible = _possible_kinds(keys)
    if expected not in possible:
        kind, use = _USES[possible[0]]
        raise SpecError([Fault(str(path), "", f"is {kind}; {use} {shlex.quote(str(path))}`")])


def check_name(expected: Kind, path: Path) -> None:
    """Raise `SpecError` if there is no such file, but a shipped one of another kind than expected."""
    if not is_name(path):
        return
    for kind in _KINDS:
        if kind != expected and path.name in _SHIPPED[kind]() and not path.exists():
            problem = f"is the name of a shipped {kind}; {_USES[kind][1]} {path.name}`"
            raise SpecError([Fault(str(path), "", problem)])


def _possible_kinds(keys: Collection[str]) -> tuple[Kind, ...]:
    """Return the kinds that a file may be of: all, if it has keys of several kinds or of none."""
    marked = tuple(kind for kind in _KINDS if not _OWN_KEYS[kind].isdisjoint(keys))
    if len(marked) == 1:
        return marked
    return ("sweep", "tune") if not marked and _BASE in keys else _KINDS
