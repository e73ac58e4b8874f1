"""A table of named objects, each imported when it is first used."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Generic, TypeVar, cast

from atari_dqn.errors import UserError

T = TypeVar("T")


class Registry(Generic[T]):
    """A mapping from a unique name to an object, given as `"module:attribute"`."""

    def __init__(self, kind: str, entries: Iterable[tuple[str, str]]) -> None:
        self.kind = kind
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
        if name not in self._targets:
            raise UserError(self._unknown(name))
        module, attribute = self._targets[name].split(":")
        return cast(T, getattr(import_module(module), attribute))

    def __iter__(self) -> Iterator[str]:
        return iter(self._targets)

    def _unknown(self, name: str) -> str:
        near = difflib.get_close_matches(name, self._targets, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        return f"unknown {self.kind} {name!r}; expected one of {', '.join(sorted(self._targets))}{hint}"
