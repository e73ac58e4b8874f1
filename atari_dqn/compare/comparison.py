"""Compute everything that `dqn compare` shows from run directories."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from polars.exceptions import PanicException

from atari_dqn.compare.aggregate import (
    Aggregate,
    Improvement,
    SharedGames,
    aggregates,
    improvements,
    shared_games,
)
from atari_dqn.compare.atari100k_scores import Atari100kScore, atari100k_scores
from atari_dqn.compare.caveats import Caveat, merged, warnings_of, warnings_over_games
from atari_dqn.compare.contrast import Contrast, contrast
from atari_dqn.compare.group import Group, Method, group_runs
from atari_dqn.compare.group_score import GroupScore, group_score
from atari_dqn.compare.load import load_runs
from atari_dqn.compare.protocol_differences import ScoredGroup, obstacles
from atari_dqn.compare.reference.studies import HumanRandom, human_random
from atari_dqn.compare.references import ComparedReference, compared_references
from atari_dqn.compare.selection import select_best, select_last
from atari_dqn.compare.time_to_score import TimeToScore, time_to_human, time_to_score
from atari_dqn.errors import DamagedError, UserError
from atari_dqn.formatting import printable
from atari_dqn.spec.protocol import Protocol

_ANY_FAULT = (Exception, PanicException)
"""Exceptions that a damaged run may raise; the `PanicException` of polars is not an `Exception`."""


@dataclass(frozen=True, kw_only=True)
class LeftOut:
    """A path that cannot be compared."""

    path: Path
    error: UserError | DamagedError
    """The reason."""

    def __str__(self) -> str:
        return printable(f"left out: {self.error}")


@dataclass(frozen=True, kw_only=True)
class GroupResult:
    """A group with its scores and their comparisons."""

    group: Group
    last: GroupScore
    """Scores at the requested frame, or of the final evaluations."""
    best: GroupScore
    """Scores of the best full evaluations up to the same frame."""
    contrast: Contrast | None
    """Comparison with the first group of the game; None for that group, or if there is no finding."""
    time_to_score: TimeToScore | None
    """Time to the requested score, or to the human score; None if there is no such score."""
    references: tuple[ComparedReference, ...]
    atari100k: tuple[Atari100kScore, ...]
    """Published columns of Atari 100k, if the scores have its budget and protocol."""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The result of comparing runs. No average mixes games, methods or protocols."""

    at_frames: int | None
    """The frame at which runs are compared; None for the end of the runs."""
    to_score: float | None
    """The score of `time_to_score`; None for the human score of each game."""
    human_table: str
    humans: Mapping[str, HumanRandom]
    """Human and random scores by game; games that the table does not contain are absent."""
    results: tuple[GroupResult, ...]
    normalised_over: SharedGames
    """The games of the aggregates."""
    aggregates: tuple[Aggregate, ...]
    improved_over: SharedGames
    """The games of the improvements; methods of which no claim covers the first one too are left out."""
    improvements: tuple[Improvement, ...]
    protocols: Mapping[str, Protocol]
    """The protocols of the scores, by fingerprint."""
    separate_caveats: tuple[Caveat, ...]
    """The caveats of the scores, one for each group, game or method."""
    left_out: tuple[LeftOut, ...] = ()
    """The paths that are left out because they cannot be compared."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """The caveats of the scores, in a line for each group, game or method."""
        return tuple(map(str, self.separate_caveats))

    @property
    def merged_caveats(self) -> tuple[str, ...]:
        """The caveats of the scores; one that several groups share is a line with their names."""
        return tuple(merged(self.separate_caveats, len(self.results)))

    @property
    def caveats(self) -> tuple[str, ...]:
        """The paths that are left out, and the merged caveats."""
        return (*map(str, self.left_out), *self.merged_caveats)

    @property
    def games(self) -> list[str]:
        """The games, in the order of the runs."""
        return list(dict.fromkeys(result.group.game for result in self.results))

    def of_game(self, game: str) -> list[GroupResult]:
        """Return the results of the groups that play a game."""
        return [result for result in self.results if result.group.game == game]


def compare(
    paths: Sequence[Path], *, at_frames: int | None = None, to_score: float | None = None, human_table: str
) -> Comparison:
    """Compare the runs of some directories; a directory given twice counts once.

    `to_score`: the score whose time is measured, by default the human score of each game. Raise `UserError`
    for a path that is not a run directory, `DamagedError` for a run directory with invalid files.
    """
    groups = group_runs(load_runs(list(dict.fromkeys(paths))))
    games = dict.fromkeys(group.game for group in groups)
    humans = {game: found for game in games if (found := human_random(game, human_table)) is not None}
    results: list[GroupResult] = []
    for group in groups:
        earlier = [(each.group, each.last) for each in results if each.group.game == group.game]
        results.append(_result(group, earlier, at_frames, to_score, humans.get(group.game)))
    scores = _scores_by_method(results)
    normalisable = _scores_by_method(
        [each for each in results if _is_covered(each.last, humans.get(each.group.game))], every=results
    )
    normalised_over = shared_games(normalisable)
    improved_over = _of_one_claim(shared_games(scores), results)
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
        separate_caveats=(
            *warnings_of(scored, protocols, at_frames),
            *warnings_over_games(scored, normalised_over, improved_over, humans),
        ),
    )


def compare_readable(
    paths: Sequence[Path], *, at_frames: int | None = None, to_score: float | None = None, human_table: str
) -> Comparison:
    """Compare those of several paths that are readable runs, and list the others in `left_out`.

    If none is readable, raise `DamagedError` if one is damaged, else `UserError`; for a single path, its own.
    """
    options: dict[str, Any] = {"at_frames": at_frames, "to_score": to_score, "human_table": human_table}
    try:
        return compare(paths, **options)
    except _ANY_FAULT:  # looked for run by run below
        unreadable = [
            found for path in dict.fromkeys(paths) if (found := _left_out(path, options)) is not None
        ]
    faulty = {each.path for each in unreadable}
    readable = [path for path in paths if path not in faulty]
    if readable:
        return replace(compare(readable, **options), left_out=tuple(unreadable))
    if len(unreadable) == 1:
        raise unreadable[0].error
    reasons = "; ".join(str(each.error) for each in unreadable)
    is_damage = any(isinstance(each.error, DamagedError) for each in unreadable)
    kind = DamagedError if is_damage else UserError
    raise kind(f"none of {len(unreadable)} paths is a run that can be compared: {reasons}")


def _left_out(path: Path, options: Mapping[str, Any]) -> LeftOut | None:
    """Return a run with the reason why it cannot be compared even alone; None if it can."""
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
    earlier: Sequence[ScoredGroup],
    at_frames: int | None,
    to_score: float | None,
    human: HumanRandom | None,
) -> GroupResult:
    last = group_score(select_last(group.runs, at_frames))
    best = group_score(select_best(group.runs, at_frames))
    return GroupResult(
        group=group,
        last=last,
        best=best,
        contrast=contrast(group, last, earlier),
        time_to_score=_time_to_score(group, to_score, human, at_frames),
        references=compared_references(group, last, best),
        atari100k=atari100k_scores(group, last, human),
    )


def _time_to_score(
    group: Group, to_score: float | None, human: HumanRandom | None, at_frames: int | None
) -> TimeToScore | None:
    """Compute the time to the requested score, or to the human score in evaluations that it covers."""
    if to_score is not None:
        return time_to_score(group.runs, to_score, at_frames=at_frames)
    return None if human is None else time_to_human(group.runs, human, at_frames=at_frames)


def _is_covered(last: GroupScore, human: HumanRandom | None) -> bool:
    return human is not None and last.is_covered_by(human)


def _scores_by_method(
    counted: Sequence[GroupResult], *, every: Sequence[GroupResult] = ()
) -> dict[Method, dict[str, dict[int, float]]]:
    """Return for each method the scores that may be aggregated; a method of `every` may have none."""
    scores: dict[Method, dict[str, dict[int, float]]] = {each.group.method: {} for each in every or counted}
    for result in counted:
        if result.last.n and result.last.comparable:
            values = {seed: each.mean_return for seed, each in result.last.evaluations.items()}
            scores[result.group.method][result.group.game] = values
    return scores


def _of_one_claim(shared: SharedGames, results: Sequence[GroupResult]) -> SharedGames:
    """Leave out the methods of which no claim covers the score on some game and that of the first method."""
    scored = {(each.group.method, each.group.game): (each.group, each.last) for each in results}
    left_out = dict(shared.left_out)
    for method in shared.methods[1:]:
        first = shared.methods[0]
        found = [obstacles(scored[method, game], scored[first, game]) for game in shared.games]
        differences = dict.fromkeys(chain.from_iterable(found))
        if differences:
            left_out[method] = f"its scores are not comparable with {first.label}: {'; '.join(differences)}"
    methods = tuple(method for method in shared.methods if method not in left_out)
    return replace(shared, methods=methods, left_out=left_out)


def _protocols(results: Sequence[GroupResult]) -> Iterator[tuple[str, Protocol]]:
    for result in results:
        digests = {*result.last.protocol_digests, *result.best.protocol_digests}
        for run in result.group.runs:
            yield from ((digest, protocol) for digest, protocol in run.protocols.items() if digest in digests)
