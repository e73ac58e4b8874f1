"""The comparison: runs in, everything that `dqn compare` shows out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from polars.exceptions import PanicException

from atari_dqn.compare.aggregate import (
    Aggregate,
    Improvement,
    Shared,
    aggregates,
    human_scores,
    improvements,
    shared_games,
)
from atari_dqn.compare.atari100k import Published, published
from atari_dqn.compare.caveats import warnings_of, warnings_over_games
from atari_dqn.compare.contrast import Contrast, contrast
from atari_dqn.compare.group import Group, Method, group_runs
from atari_dqn.compare.load import load_runs
from atari_dqn.compare.reference.tables import HumanRandom, human_random
from atari_dqn.compare.references import Beside, beside
from atari_dqn.compare.score import GroupScore, group_score
from atari_dqn.compare.selection import best_choices, last_choices
from atari_dqn.compare.time_to_score import Pace, pace
from atari_dqn.errors import DamagedError, UserError
from atari_dqn.formatting import printable
from atari_dqn.spec.protocol import Protocol

_ANY_FAULT = (Exception, PanicException)
"""What a damaged run may raise; a panic within polars is no `Exception`."""


@dataclass(frozen=True, kw_only=True)
class LeftOut:
    """A path that cannot be compared."""

    path: Path
    error: UserError | DamagedError
    """Why, for the user."""

    def __str__(self) -> str:
        return printable(f"left out: {self.error}")


@dataclass(frozen=True, kw_only=True)
class GroupResult:
    """A group with all that was made of it."""

    group: Group
    last: GroupScore
    """At the frame asked for, or of the final evaluations."""
    best: GroupScore
    """Of the best full evaluations so far."""
    contrast: Contrast | None
    """To the first group of the game; None for that group, and where there is nothing to say."""
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
    normalised_over: Shared
    """The games of the aggregates."""
    aggregates: tuple[Aggregate, ...]
    improved_over: Shared
    """The games of the improvements."""
    improvements: tuple[Improvement, ...]
    protocols: Mapping[str, Protocol]
    """Those of the scores, by fingerprint."""
    warnings: tuple[str, ...]
    left_out: tuple[LeftOut, ...] = ()
    """The paths that are left out because they cannot be compared."""

    @property
    def caveats(self) -> tuple[str, ...]:
        """What a reader must know: the paths that are left out, and the warnings."""
        return (*map(str, self.left_out), *self.warnings)

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
    results: list[GroupResult] = []
    for group in groups:
        earlier = [(each.group, each.last) for each in results if each.group.game == group.game]
        results.append(_result(group, earlier, at_frames, to_score, humans.get(group.game)))
    scores = _scores_by_method(results)
    normalisable = human_scores(scores, humans)
    normalised_over, improved_over = shared_games(normalisable), shared_games(scores)
    over_games = aggregates(normalisable, normalised_over, humans)
    protocols = dict(_protocols(results))
    scored = [(each.group, each.last, each.best) for each in results]
    return Comparison(
        at_frames=at_frames,
        to_score=to_score,
        human_table=human_table,
        humans=humans,
        results=tuple(results),
        normalised_over=normalised_over,
        aggregates=tuple(over_games),
        improved_over=improved_over,
        improvements=tuple(improvements(scores, improved_over)),
        protocols=protocols,
        warnings=(*warnings_of(scored, protocols), *warnings_over_games(over_games, normalised_over)),
    )


def compare_readable(
    paths: Sequence[Path], *, at_frames: int | None = None, to_score: float | None = None, human_table: str
) -> Comparison:
    """Compare those of several paths that are runs and can be read; the others are named in the result.

    `UserError` where none can be; of a single path its own error.
    """
    options: dict[str, Any] = {"at_frames": at_frames, "to_score": to_score, "human_table": human_table}
    try:
        return compare(paths, **options)
    except _ANY_FAULT:  # found below, run by run
        unreadable = [found for path in dict.fromkeys(paths) if (found := _fault(path, options)) is not None]
    faulty = {each.path for each in unreadable}
    readable = [path for path in paths if path not in faulty]
    if readable:
        return replace(compare(readable, **options), left_out=tuple(unreadable))
    if len(unreadable) == 1:
        raise unreadable[0].error
    reasons = "; ".join(str(each.error) for each in unreadable)
    raise UserError(f"none of {len(unreadable)} paths is a run that can be compared: {reasons}")


def _fault(path: Path, options: Mapping[str, Any]) -> LeftOut | None:
    """Return why a run cannot be compared, not even alone; None for one that can."""
    try:
        compare([path], **options)
    except (UserError, DamagedError) as error:
        return LeftOut(path=path, error=error)
    except _ANY_FAULT as error:
        words = " ".join(str(error).split())
        return LeftOut(path=path, error=DamagedError(f"{path}: {type(error).__name__}: {words}"))
    return None


def _result(
    group: Group,
    earlier: Sequence[tuple[Group, GroupScore]],
    at_frames: int | None,
    to_score: float | None,
    human: HumanRandom | None,
) -> GroupResult:
    last = group_score(last_choices(group.runs, at_frames))
    best = group_score(best_choices(group.runs, at_frames))
    return GroupResult(
        group=group,
        last=last,
        best=best,
        contrast=contrast(group, last, earlier),
        pace=_pace(group, to_score, human),
        beside=beside(group, last, best),
        published=published(group, last, human),
    )


def _pace(group: Group, to_score: float | None, human: HumanRandom | None) -> Pace | None:
    """Return how soon runs reach the score asked for, or in games that compare with a person's, that."""
    if to_score is not None:
        return pace(group.runs, to_score)
    return None if human is None else pace(group.runs, human.human, comparable_only=True)


def _scores_by_method(results: Sequence[GroupResult]) -> dict[Method, dict[str, dict[int, float]]]:
    """Return the scores that may be aggregated; a method may have none."""
    scores: dict[Method, dict[str, dict[int, float]]] = {}
    for result in results:
        by_game = scores.setdefault(result.group.method, {})
        if result.last.n and result.last.comparable:
            values = {seed: each.mean_return for seed, each in result.last.evaluations.items()}
            by_game[result.group.game] = values
    return scores


def _protocols(results: Sequence[GroupResult]) -> Iterator[tuple[str, Protocol]]:
    for result in results:
        digests = {*result.last.protocol_digests, *result.best.protocol_digests}
        for run in result.group.runs:
            yield from ((digest, words) for digest, words in run.protocols.items() if digest in digests)
