"""A table of named objects, each imported when it is first used."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Generic, TypeVar, cast

from atari_dqn.errors import UserError

T = TypeVar("T")


class Registry(Generic[T]):
    """A mapping from a unique name to an object, given as `"module:attribute"`.

    Other packages add names through entry points of `group`; ours come first.
    """

    def __init__(self, kind: str, entries: Iterable[tuple[str, str]], *, group: str | None = None) -> None:
        self.kind, self._group = kind, group
        self._targets: dict[str, str] = {}
        for name, target in entries:
            self.add(name, target)

    def add(self, name: str, target: str) -> None:
        """Add an entry; `ValueError` if the name is taken or the target is not `module:attribute`."""
        if name in self._targets:
            raise ValueError(f"{self.kind} {name!r} is registered twice: {self._targets[name]} and {target}")
        if target.count(":") != 1:
            raise ValueError(f"{self.kind} {name!r}: expected 'module:attribute', got {target!r}")
        self._targets[name] = target

    def load(self, name: str) -> T:
        """Import and return the object registered as `name`; `UserError` if there is none."""
        target = self._targets.get(name) or self._installed(name)
        if target is None:
            raise UserError(self._unknown(name))
        module, attribute = target.split(":")
        return cast(T, getattr(import_module(module), attribute))

    def __iter__(self) -> Iterator[str]:
        return iter(self._targets)

    def _installed(self, name: str) -> str | None:
        """Give the target of another package's entry point; None where there is none."""
        return None if self._group is None else _installed(self._group).get(name)

    def _unknown(self, name: str) -> str:
        near = difflib.get_close_matches(name, self._targets, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        return f"unknown {self.kind} {name!r}; expected one of {', '.join(sorted(self._targets))}{hint}"


def entry_point_names(group: str) -> tuple[str, ...]:
    """Name the parts that other packages install."""
    return tuple(sorted(_installed(group)))


def _installed(group: str) -> dict[str, str]:
    """Map the names of a group's entry points to their targets."""
    from importlib.metadata import entry_points  # here, as most commands need none

    return {entry.name: entry.value for entry in entry_points(group=group)}
