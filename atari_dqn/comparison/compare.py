"""The comparison: runs in, everything that `dqn compare` shows out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from atari_dqn.comparison.aggregate import Aggregate, Improvement, aggregates, improvements
from atari_dqn.comparison.beside import Beside, beside
from atari_dqn.comparison.choose import best_choices, last_choices
from atari_dqn.comparison.group import Group, Method, group_runs
from atari_dqn.comparison.load import load_runs
from atari_dqn.comparison.pace import Pace, pace
from atari_dqn.comparison.published import Published, published
from atari_dqn.comparison.score import GroupScore, group_score
from atari_dqn.comparison.warn import warnings_of
from atari_dqn.protocol import Protocol
from atari_dqn.reference.tables import HumanRandom, human_random


@dataclass(frozen=True, kw_only=True)
class GroupResult:
    """A group with all that was made of it."""

    group: Group
    last: GroupScore
    """At the frame asked for, or of the final evaluations."""
    best: GroupScore
    """Of the best full evaluations so far."""
    pace: Pace | None
    """To the score asked for, or a person's; None where there is none."""
    beside: tuple[Beside, ...]
    published: tuple[Published, ...]
    """Columns of Atari 100k, where the scores are of its budget and protocol."""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Everything a comparison says. Nothing in it is averaged over what is not the same."""

    at_frames: int | None
    """None: at the end of the runs."""
    to_score: float | None
    """None: to a person's."""
    human_table: str
    humans: Mapping[str, HumanRandom]
    """By game; games that the table does not have are absent."""
    results: tuple[GroupResult, ...]
    aggregates: tuple[Aggregate, ...]
    improvements: tuple[Improvement, ...]
    protocols: Mapping[str, Protocol]
    """Those of the scores, by fingerprint."""
    warnings: tuple[str, ...]

    @property
    def games(self) -> list[str]:
        """The games, in the order of the runs."""
        return list(dict.fromkeys(result.group.game for result in self.results))

    def of_game(self, game: str) -> list[GroupResult]:
        """Return the groups that play a game."""
        return [result for result in self.results if result.group.game == game]


def compare(
    paths: Sequence[Path], *, at_frames: int | None = None, to_score: float | None = None, human_table: str
) -> Comparison:
    """Compare runs by their directories; one that is named twice counts once.

    `to_score` is the score that frames and hours are counted to, a person's by default. `UserError` for a
    path that is no run directory; `DamagedError` for one whose files are not what a run writes.
    """
    groups = group_runs(load_runs(list(dict.fromkeys(paths))))
    games = dict.fromkeys(group.game for group in groups)
    humans = {game: found for game in games if (found := human_random(game, human_table)) is not None}
    results = tuple(
        _result(group, at_frames, _threshold(group, to_score, humans), humans.get(group.game))
        for group in groups
    )
    scores = _scores_by_method(results)
    protocols = dict(_protocols(results))
    over_games = aggregates(scores, humans)
    return Comparison(
        at_frames=at_frames,
        to_score=to_score,
        human_table=human_table,
        humans=humans,
        results=results,
        aggregates=tuple(over_games),
        improvements=tuple(improvements(scores)) if scores else (),
        protocols=protocols,
        warnings=tuple(
            warnings_of([(each.group, each.last, each.best) for each in results], over_games, protocols)
        ),
    )


def _result(
    group: Group, at_frames: int | None, threshold: float | None, human: HumanRandom | None
) -> GroupResult:
    last = group_score(last_choices(group.runs, at_frames))
    best = group_score(best_choices(group.runs, at_frames))
    return GroupResult(
        group=group,
        last=last,
        best=best,
        pace=None if threshold is None else pace(group.runs, threshold),
        beside=beside(group, last, best),
        published=published(group, last, human),
    )


def _threshold(group: Group, to_score: float | None, humans: Mapping[str, HumanRandom]) -> float | None:
    if to_score is not None:
        return to_score
    return humans[group.game].human if group.game in humans else None


def _scores_by_method(results: Sequence[GroupResult]) -> dict[Method, dict[str, dict[int, float]]]:
    scores: dict[Method, dict[str, dict[int, float]]] = {}
    for result in results:
        if result.last.n:
            values = {seed: each.mean_return for seed, each in result.last.evaluations.items()}
            scores.setdefault(result.group.method, {})[result.group.game] = values
    return scores


def _protocols(results: Sequence[GroupResult]) -> Iterator[tuple[str, Protocol]]:
    for result in results:
        digests = {*result.last.protocol_digests, *result.best.protocol_digests}
        for run in result.group.runs:
            yield from ((digest, words) for digest, words in run.protocols.items() if digest in digests)
