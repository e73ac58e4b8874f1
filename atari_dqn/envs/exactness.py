"""The games whose emulator is not restored exactly, as measured by benchmarks/exactness.py."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from importlib.resources import files

_TABLE = "inexact_games.toml"


@dataclass(frozen=True)
class Exactness:
    """A version of ale-py, and its games that are not restored exactly, each with the measurement."""

    ale_version: str
    inexact_games: dict[str, str]


@cache
def exactness() -> Exactness:
    """Load the table of the package."""
    table = tomllib.loads((files("atari_dqn.envs") / _TABLE).read_text())
    return Exactness(table["ale_py"], table["games"])


def why_inexact_game(game: str) -> str | None:
    """Return the reason why a resumed run of this game may not be exact; None if it is exact."""
    tested, installed = exactness(), version("ale-py")
    if installed != tested.ale_version:
        return f"restoring games was tested with ale-py {tested.ale_version}, not with {installed}"
    if game in tested.inexact_games:
        found = tested.inexact_games[game]
        return f"ale-py {installed} does not restore {game} exactly (exact continuations: {found})"
    return None
