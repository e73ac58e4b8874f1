"""Scores over games: human-normalised, and which method improves on which."""

from __future__ import annotations

from collections import defaultdict
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


def aggregates(scores: Mapping[Method, ScoresByGame], humans: Mapping[str, HumanRandom]) -> list[Aggregate]:
    """Return each method's aggregate over the games that all of them have; over its own if there is none."""
    shared = _shared(scores, humans)
    found = []
    for method, by_game in scores.items():
        games = shared or [game for game in by_game if game in humans]
        if games:
            found.append(_aggregate(method, by_game, games, humans, all_share=bool(shared)))
    return found


def improvements(scores: Mapping[Method, ScoresByGame]) -> list[Improvement]:
    """Return each method beside the first: on the games they share, raw scores, more is better."""
    first, *others = scores
    found = []
    for method in others:
        games = [game for game in scores[method] if game in scores[first]]
        if games:
            left, right = (_matrix(scores[each], games)[0] for each in (method, first))
            probability = improvement(left, right)
            found.append(Improvement(method=method, over=first, games=tuple(games), probability=probability))
    return found


def _aggregate(
    method: Method,
    by_game: ScoresByGame,
    games: Sequence[str],
    humans: Mapping[str, HumanRandom],
    *,
    all_share: bool,
) -> Aggregate:
    matrix, notes = _matrix(by_game, games)
    columns = [
        [humans[game].normalised(score) for score in matrix[:, place]] for place, game in enumerate(games)
    ]
    left_out = [game for game in by_game if game not in games]
    if left_out:
        notes.append(f"without {', '.join(left_out)}")
    if not all_share:
        notes.append("methods share no game: these rows do not compare")
    return Aggregate(
        method=method,
        games=tuple(games),
        n=len(matrix),
        estimates=estimates(np.array(columns).T, _STATISTICS),
        notes=tuple(notes),
    )


def _shared(scores: Mapping[Method, ScoresByGame], humans: Mapping[str, HumanRandom]) -> list[str]:
    count: dict[str, int] = defaultdict(int)
    for by_game in scores.values():
        for game in by_game:
            count[game] += game in humans
    return [game for game, methods in count.items() if methods == len(scores)]


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
