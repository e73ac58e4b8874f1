"""Which games go on exactly after their emulator is restored, as benchmarks/exactness.py found."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from importlib.resources import files

_TABLE = "inexact_games.toml"


@dataclass(frozen=True)
class Exactness:
    """A version of ale-py, and the games of it that are not exact, each with what was found."""

    ale_version: str
    inexact_games: dict[str, str]


@cache
def exactness() -> Exactness:
    """Return the table in the package."""
    table = tomllib.loads((files("atari_dqn.envs") / _TABLE).read_text())
    return Exactness(table["ale_py"], table["games"])


def why_inexact_game(game: str) -> str | None:
    """Return why a run of this game may not be called exact once it is resumed; None where it may."""
    tried, installed = exactness(), version("ale-py")
    if installed != tried.ale_version:
        return f"restoring games was tried with ale-py {tried.ale_version}, not with {installed}"
    if game in tried.inexact_games:
        found = tried.inexact_games[game]
        return f"ale-py {installed} does not restore {game} exactly (points that went on exactly: {found})"
    return None
