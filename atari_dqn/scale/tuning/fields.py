"""Read the fields of a section of a TOML file, each with its type and range, and collect the faults."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from atari_dqn.spec.check import show
from atari_dqn.spec.errors import Fault
from atari_dqn.spec.suggest import did_you_mean

Value = TypeVar("Value")
Word = TypeVar("Word", bound=str)
_LARGEST = 2**63 - 1
"""The largest integer of TOML."""


class Fields:
    """The fields of a section. A field at fault has its default value, and its fault is in `faults`."""

    def __init__(self, path: Path, name: str, table: Mapping[str, Any], known: Sequence[str]) -> None:
        self.faults: list[Fault] = []
        self.where = str(path)
        self.is_written = name in table
        found = table.get(name, {})
        if not isinstance(found, dict):
            self._add(name, f"found {show(found)}, expected a section [{name}]")
            found = {}
        self._name, self._found = name, found
        for key in found:
            if key not in known:
                self._add(f"{name}.{key}", "unknown key" + did_you_mean(key, known))

    def integer(self, key: str, default: int, *, low: int, high: int = _LARGEST) -> int:
        """Return an integer of at least `low` and at most `high`."""
        value = self._found.get(key, default)
        if type(value) is int and low <= value <= high:
            return value
        limit = "" if high == _LARGEST else f" and at most {high:,}"
        return self._wrong(key, f"an integer at least {low}{limit}", default)

    def positive(self, key: str, default: float) -> float:
        """Return a number above 0."""
        value = self._found.get(key, default)
        if type(value) in (int, float) and 0 < value <= sys.float_info.max:
            return float(value)
        return self._wrong(key, "a number more than 0", default)

    def word(self, key: str, default: Word, words: Sequence[Word]) -> Word:
        """Return one of some words."""
        value = self._found.get(key, default)
        for word in words:
            if value == word:
                return word
        hint = did_you_mean(value, words) if isinstance(value, str) else ""
        return self._wrong(key, f"one of {', '.join(map(show, words))}{hint}", default)

    def __contains__(self, key: str) -> bool:
        return key in self._found

    def fault(self, key: str, problem: str) -> None:
        """Add a fault of a field."""
        self._add(f"{self._name}.{key}", problem)

    def _wrong(self, key: str, expected: str, default: Value) -> Value:
        self.fault(key, f"found {show(self._found[key])}, expected {expected}")
        return default

    def _add(self, key: str, problem: str) -> None:
        self.faults.append(Fault(self.where, key, problem))
