"""Read the keys that sweep and tune files share: games, by name or by list, seeds, and threads."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from atari_dqn.spec.check import show, value_problem
from atari_dqn.spec.constraints import AUTO
from atari_dqn.spec.errors import Fault
from atari_dqn.spec.games import MULTI_PLAYER_GAMES, SINGLE_PLAYER_GAMES, TOY_GAMES, game_problem
from atari_dqn.spec.keys import KEYS, Values
from atari_dqn.spec.suggest import did_you_mean

_MOST_SEEDS = 10_000
_KNOWN = (*SINGLE_PLAYER_GAMES, *MULTI_PLAYER_GAMES, *TOY_GAMES)
"""The games of some kind of environment; those of another kind than a spec's are found with the spec."""


@cache
def game_lists() -> Mapping[str, tuple[str, ...]]:
    """Return the lists of games by name."""
    text = files("atari_dqn.scale").joinpath("game_lists.toml").read_text("utf-8")
    return {name: tuple(games) for name, games in tomllib.loads(text).items()}


def read_games(path: Path, table: Mapping[str, Any]) -> tuple[tuple[str, ...] | None, list[Fault]]:
    """Return the known games of a sweep file, None if it names none, and the faults of the axis."""
    if "game" not in table:
        return None, []
    found = table["game"]
    if isinstance(found, str):
        games: Sequence[Any] = game_lists().get(found, (found,))
    elif isinstance(found, list):
        games = found
    else:
        expected = f"a game, a list of games, or one of {', '.join(game_lists())}"
        return (), [Fault(str(path), "game", f"found {show(found)}, expected {expected}")]
    faults = [*_list_faults(path, "game", games), *_game_faults(path, games)]
    return tuple(dict.fromkeys(game for game in games if game in _KNOWN)), faults


def _game_faults(path: Path, games: Sequence[Any]) -> Iterator[Fault]:
    """Yield a fault for each name that no kind of environment plays."""
    for game in dict.fromkeys(map(str, games)):
        if game in _KNOWN:
            continue
        problem = game_problem(game, kind=None) or ""
        if "did you mean" not in problem:
            problem += did_you_mean(game, game_lists())
        yield Fault(str(path), "game", problem)


def read_seeds(path: Path, table: Mapping[str, Any]) -> tuple[tuple[int, ...] | None, list[Fault]]:
    """Return the seeds of a sweep file, None if it names none, and the faults of the axis."""
    if "seeds" in table:
        found = table["seeds"]
        both = [Fault(str(path), "seeds", "found seed too; write one of them")] if "seed" in table else []
        if type(found) is not int or not 1 <= found <= _MOST_SEEDS:
            expected = f"a number of seeds from 1 to {_MOST_SEEDS:,}, or seed = [1, 2, 3]"
            return (), [*both, Fault(str(path), "seeds", f"found {show(found)}, expected {expected}")]
        return tuple(range(1, found + 1)), both
    if "seed" not in table:
        return None, []
    seeds = table["seed"] if isinstance(table["seed"], list) else [table["seed"]]
    problems = [problem for seed in seeds if (problem := value_problem(KEYS["seed"], seed)) is not None]
    faults = [Fault(str(path), "seed", problem) for problem in dict.fromkeys(problems)]
    return tuple(seed for seed in seeds if type(seed) is int), [*_list_faults(path, "seed", seeds), *faults]


def read_threads(path: Path, table: Mapping[str, Any]) -> tuple[int, list[Fault]]:
    """Return the number of torch's threads in each run, 1 if the file names none, and its fault."""
    found = table.get("threads", 1)
    if type(found) is int and 1 <= found < 2**63:
        return found, []
    return 1, [Fault(str(path), "threads", f"found {show(found)}, expected an integer at least 1")]


def threads_problem(values: Values, threads: int) -> str | None:
    """Describe why a complete spec contradicts the number of threads of each run; None if it agrees."""
    found = values.get("learner.threads", AUTO)
    if found in (AUTO, threads):
        return None
    return (
        f'found {show(found)}, expected "auto" or {threads}, the threads of each run; '
        f'write threads = {show(found)} at the top, or learner.threads = "auto" in [set]'
    )


def _list_faults(path: Path, key: str, values: Sequence[Any]) -> Iterator[Fault]:
    if not values:
        yield Fault(str(path), key, "is empty; expected at least one")
    for value in dict.fromkeys(map(str, values)):
        if sum(str(each) == value for each in values) > 1:
            yield Fault(str(path), key, f"names {value} more than once")
