"""The keys of a terminal, and the action that the keys which are held select.

A terminal reports that a key was pressed, and again while it is held, but not that it was released. A key
therefore counts as held for a short time after each report.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Protocol

from atari_dqn.types import StepBatch

HOLD_SECONDS = 0.3
"""How long a key counts as held: less than the time until most keyboards repeat it, more than the time
between repeats."""
_NAMES: Mapping[str, str] = MappingProxyType(
    {
        "\x1b[A": "up", "\x1b[B": "down", "\x1b[C": "right", "\x1b[D": "left",
        "\x1bOA": "up", "\x1bOB": "down", "\x1bOC": "right", "\x1bOD": "left",
        "w": "up", "s": "down", "d": "right", "a": "left", " ": "fire",
    }
)  # fmt: skip
_OPPOSITE: Mapping[str, str] = MappingProxyType(
    {"up": "down", "down": "up", "left": "right", "right": "left"}
)
_KEY = re.compile(r"\x1b(?:\[\[.|\[[0-?]*[ -/]*[@-~]|O.)|.", re.DOTALL)
"""A whole sequence of a key, such as F2, Shift-Left or F1 of a Linux console, or one character."""
_INCOMPLETE = re.compile(r"\x1b(?:\[\[|\[[0-?]*[ -/]*|O)?\Z")
"""The beginning of a sequence at the end of what was read."""
_ESCAPE = "\x1b"
QUIT, PAUSE = "q", "p"
HELP_TO_WATCH = f"{QUIT} quits · {PAUSE} pauses"
HELP_TO_PLAY = f"{HELP_TO_WATCH} · arrows or WASD move · space fires"
"""What a narrow terminal cuts off comes last."""
_PARTS = ("up", "down", "left", "right", "fire")
"""The order in which ALE's names of actions join them."""


class Keys(Protocol):
    """What a person does with the keys, of a terminal or of a window."""

    commands: list[str]
    """Keys that do not move anything, in the order in which they were pressed; the reader removes those
    it has handled."""

    def poll(self) -> None:
        """Take in what was done since the last call."""
        ...

    def held(self) -> set[str]:
        """Return the names of the keys that are held: up, down, left, right and fire."""
        ...


class Keyboard:
    """The keys of a terminal that are held. `read` returns the text typed since it was last called."""

    def __init__(self, read: Callable[[], str], now: Callable[[], float] = time.monotonic) -> None:
        self._read, self._now = read, now
        self._held_until: dict[str, float] = {}
        self._incomplete = ""
        self.commands: list[str] = []
        """Other keys that were pressed, in order; the stage removes those that it has handled."""

    def poll(self) -> None:
        """Take in what was typed."""
        for key in _KEY.findall(self._whole_sequences()):
            name = _NAMES.get(key.lower() if len(key) == 1 else key)
            if name is None:
                self.commands += [] if key.startswith(_ESCAPE) else [key]
                continue
            self._held_until.pop(_OPPOSITE.get(name, ""), None)
            self._held_until[name] = self._now() + HOLD_SECONDS

    def _whole_sequences(self) -> str:
        """Read what was typed; a sequence that is incomplete is kept for the next call."""
        typed = self._incomplete + self._read()
        found = _INCOMPLETE.search(typed)
        end = len(typed) if found is None else found.start()
        self._incomplete = typed[end:]
        return typed[:end]

    def held(self) -> set[str]:
        """Return the names of the keys that count as held."""
        now = self._now()
        return {name for name, until in self._held_until.items() if now < until}


def action_of(held: set[str], action_names: Sequence[str]) -> int:
    """Return the action of some keys: of all of them, or else of as many as the game has an action for.

    Without any, the action is the first one, ALE's no-op.
    """
    pressed = [part for part in _PARTS if part in held]
    subsets = sorted(_subsets(pressed), key=len, reverse=True)
    names = ("".join(subset) for subset in subsets)
    return next((action_names.index(name) for name in names if name in action_names), 0)


def _subsets(parts: Sequence[str]) -> list[list[str]]:
    if not parts:
        return [[]]
    rest = _subsets(parts[1:])
    return [[parts[0], *subset] for subset in rest] + rest


class Person:
    """A player who holds keys."""

    def __init__(self, keyboard: Keys, action_names: Sequence[str]) -> None:
        self._keyboard, self._action_names = keyboard, action_names

    def act(self, step: StepBatch) -> int:
        """Select the action of the keys that are held."""
        del step
        self._keyboard.poll()
        return action_of(self._keyboard.held(), self._action_names)
