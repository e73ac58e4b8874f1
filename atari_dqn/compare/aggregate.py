"""Aggregate scores over shared games: human-normalised scores, and the probability of improvement."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from atari_dqn.compare.group import Method
from atari_dqn.compare.reference.studies import HumanRandom
from atari_dqn.compare.statistics import (
    Estimate,
    Scores,
    estimates,
    improvement,
    iqm,
    mean,
    median,
    optimality_gap,
)

_STATISTICS = {"mean": mean, "median": median, "iqm": iqm, "optimality_gap": optimality_gap}
ScoresByGame = Mapping[str, Mapping[int, float]]
"""The score of a method by game and seed."""


@dataclass(frozen=True, kw_only=True)
class SharedGames:
    """The games over which methods are compared."""

    games: tuple[str, ...]
    methods: tuple[Method, ...]
    """Methods with scores on all of the games."""
    left_out: Mapping[Method, str]
    """For every other method, the reason why it is left out."""
    notes: Mapping[Method, tuple[str, ...]]
    """For each of `methods`, its seeds and games that are left out."""


@dataclass(frozen=True, kw_only=True)
class Aggregate:
    """The human-normalised scores of a method, aggregated over games."""

    method: Method
    games: tuple[str, ...]
    n: int
    """Number of seeds per game."""
    estimates: Mapping[str, Estimate]
    """`mean`, `median` (of the games' means), `iqm` and `optimality_gap`."""
    notes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Improvement:
    """Probability that a run of `method` scores higher than a run of `over` on a game."""

    method: Method
    over: Method
    games: tuple[str, ...]
    probability: Estimate


def shared_games(scores: Mapping[Method, ScoresByGame]) -> SharedGames:
    """Select the games that as many methods as possible share, and list the methods that are left out.

    Among sets of games shared by the same number of methods, the largest set is selected, then the set whose
    game comes first. Methods that share no game with another are not compared. A single method keeps all of
    its games.
    """
    scored = {method: by_game for method, by_game in scores.items() if by_game}
    games = dict.fromkeys(game for by_game in scored.values() for game in by_game)
    methods_of_games = [[method for method, by_game in scored.items() if game in by_game] for game in games]
    candidates = [_common(scored, methods) for methods in methods_of_games]
    methods, common = max(candidates, key=lambda candidate: tuple(map(len, candidate)), default=((), ()))
    if len(methods) == 1 < len(scored):
        methods, common = (), ()
    left_out = {
        method: _reason(scores[method], common) for method in scores if scored and method not in methods
    }
    notes = {method: tuple(_notes(scores[method], common)) for method in methods}
    return SharedGames(games=common, methods=methods, left_out=left_out, notes=notes)


def aggregates(
    scores: Mapping[Method, ScoresByGame], shared: SharedGames, humans: Mapping[str, HumanRandom]
) -> list[Aggregate]:
    """Aggregate the scores of each method in `shared` over the shared games."""
    return [_aggregate(method, scores[method], shared, humans) for method in shared.methods]


def improvements(scores: Mapping[Method, ScoresByGame], shared: SharedGames) -> list[Improvement]:
    """Estimate the probability that each method improves on the first, by raw scores on the shared games."""
    if not shared.methods:
        return []
    first, *others = shared.methods
    found = []
    for method in others:
        left, right = (_matrix(scores[each], shared.games) for each in (method, first))
        probability = improvement(left, right)
        found.append(Improvement(method=method, over=first, games=shared.games, probability=probability))
    return found


def _reason(by_game: ScoresByGame, common: Sequence[str]) -> str:
    if not by_game:
        return "it has no score that can be normalised"
    own = ", ".join(by_game)
    if not common:
        return f"it shares no game with the others: it plays {own}"
    return f"it has no score on {', '.join(common)}, only on {own}"


def _common(
    scores: Mapping[Method, ScoresByGame], methods: Sequence[Method]
) -> tuple[tuple[Method, ...], tuple[str, ...]]:
    """Return the methods and the games on which all of them have scores."""
    first, *others = methods
    games = [game for game in scores[first] if all(game in scores[other] for other in others)]
    return tuple(methods), tuple(games)


def _aggregate(
    method: Method, by_game: ScoresByGame, shared: SharedGames, humans: Mapping[str, HumanRandom]
) -> Aggregate:
    matrix = _matrix(by_game, shared.games)
    columns = [
        [humans[game].normalised(score) for score in matrix[:, place]]
        for place, game in enumerate(shared.games)
    ]
    return Aggregate(
        method=method,
        games=shared.games,
        n=len(matrix),
        estimates=estimates(np.array(columns).T, _STATISTICS),
        notes=shared.notes[method],
    )


def _matrix(by_game: ScoresByGame, games: Sequence[str]) -> Scores:
    """Return the scores f64[N, M] of the first N seeds of M games, as many as every game has."""
    n = _number_of_seeds(by_game, games)
    kept = {game: sorted(by_game[game])[:n] for game in games}
    return np.array([[by_game[game][kept[game][row]] for game in games] for row in range(n)])


def _number_of_seeds(by_game: ScoresByGame, games: Sequence[str]) -> int:
    return min(len(by_game[game]) for game in games)


def _notes(by_game: ScoresByGame, games: Sequence[str]) -> Iterator[str]:
    """Yield the seeds that `_matrix` leaves out, and the games that are not shared."""
    n = _number_of_seeds(by_game, games)
    for game in games:
        if len(by_game[game]) > n:
            seeds = ", ".join(str(seed) for seed in sorted(by_game[game])[n:])
            yield f"{game}: seeds {seeds} are left out, because another game has only {n}"
    left_out = [game for game in by_game if game not in games]
    if left_out:
        yield f"without {', '.join(left_out)}, which some methods lack"
