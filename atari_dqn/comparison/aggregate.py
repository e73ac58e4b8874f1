"""Scores over games: human-normalised, and which method improves on which. Only over games that all share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from atari_dqn.comparison.group import Method
from atari_dqn.reference.tables import HumanRandom
from atari_dqn.statistics import Estimate, Scores, estimates, improvement, iqm, mean, median, optimality_gap

_STATISTICS = {"mean": mean, "median": median, "iqm": iqm, "optimality_gap": optimality_gap}
ScoresByGame = Mapping[str, Mapping[int, float]]
"""A method's score of each game and seed."""


@dataclass(frozen=True, kw_only=True)
class Shared:
    """The games that methods are compared over."""

    games: tuple[str, ...]
    methods: tuple[Method, ...]
    """Those that play all of the games."""
    left_out: Mapping[Method, str]
    """Why the others are not among them."""


@dataclass(frozen=True, kw_only=True)
class Aggregate:
    """A method's human-normalised scores over games."""

    method: Method
    games: tuple[str, ...]
    n: int
    """Seeds of each game."""
    estimates: Mapping[str, Estimate]
    """`mean`, `median` (of the games' means), `iqm` and `optimality_gap`."""
    notes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Improvement:
    """How likely a run of one method beats a run of another on a game."""

    method: Method
    over: Method
    games: tuple[str, ...]
    probability: Estimate


def shared_games(scores: Mapping[Method, ScoresByGame]) -> Shared:
    """Return the games that as many methods as possible have, and which methods lack them.

    Of choices with equally many methods the one with more games counts, then the earlier game. Methods that
    share no game with any other are not compared; a method that is alone has all of its games.
    """
    able = {method: by_game for method, by_game in scores.items() if by_game}
    games = dict.fromkeys(game for by_game in able.values() for game in by_game)
    players = [[method for method, by_game in able.items() if game in by_game] for game in games]
    choices = [_common(able, methods) for methods in players]
    methods, common = max(choices, key=lambda choice: tuple(map(len, choice)), default=((), ()))
    if len(methods) == 1 < len(able):
        methods, common = (), ()
    left_out = {method: _reason(scores[method]) for method in scores if able and method not in methods}
    return Shared(games=common, methods=methods, left_out=left_out)


def human_scores(
    scores: Mapping[Method, ScoresByGame], humans: Mapping[str, HumanRandom]
) -> dict[Method, ScoresByGame]:
    """Return the scores of games that the table of human scores has."""
    return {
        method: {game: seeds for game, seeds in by_game.items() if game in humans}
        for method, by_game in scores.items()
    }


def aggregates(
    scores: Mapping[Method, ScoresByGame], shared: Shared, humans: Mapping[str, HumanRandom]
) -> list[Aggregate]:
    """Return the aggregate of each method that has the shared games, over these."""
    return [_aggregate(method, scores[method], shared.games, humans) for method in shared.methods]


def improvements(scores: Mapping[Method, ScoresByGame], shared: Shared) -> list[Improvement]:
    """Return each method against the first, over the shared games: raw scores, more is better."""
    if not shared.methods:
        return []
    first, *others = shared.methods
    found = []
    for method in others:
        left, right = (_matrix(scores[each], shared.games)[0] for each in (method, first))
        probability = improvement(left, right)
        found.append(Improvement(method=method, over=first, games=shared.games, probability=probability))
    return found


def _reason(by_game: ScoresByGame) -> str:
    if not by_game:
        return "it has no score that can be normalised"
    return f"it shares no game with the others: it plays {', '.join(by_game)}"


def _common(
    scores: Mapping[Method, ScoresByGame], methods: Sequence[Method]
) -> tuple[tuple[Method, ...], tuple[str, ...]]:
    """Return methods and the games that all of them have."""
    first, *others = methods
    games = [game for game in scores[first] if all(game in scores[other] for other in others)]
    return tuple(methods), tuple(games)


def _aggregate(
    method: Method, by_game: ScoresByGame, games: Sequence[str], humans: Mapping[str, HumanRandom]
) -> Aggregate:
    matrix, notes = _matrix(by_game, games)
    columns = [
        [humans[game].normalised(score) for score in matrix[:, place]] for place, game in enumerate(games)
    ]
    left_out = [game for game in by_game if game not in games]
    if left_out:
        notes.append(f"without {', '.join(left_out)}, which not all methods play")
    return Aggregate(
        method=method,
        games=tuple(games),
        n=len(matrix),
        estimates=estimates(np.array(columns).T, _STATISTICS),
        notes=tuple(notes),
    )


def _matrix(by_game: ScoresByGame, games: Sequence[str]) -> tuple[Scores, list[str]]:
    """Return f64[N, M] of N seeds of every game, and in words which seeds that leaves out."""
    n = min(len(by_game[game]) for game in games)
    kept = {game: sorted(by_game[game])[:n] for game in games}
    notes = []
    for game in games:
        if len(by_game[game]) > n:
            seeds = ", ".join(str(seed) for seed in sorted(by_game[game])[n:])
            notes.append(f"{game}: seeds {seeds} are left out, other games have {n}")
    return np.array([[by_game[game][kept[game][row]] for game in games] for row in range(n)]), notes
