"""Collect the caveats of a comparison: warnings that qualify its scores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict

from atari_dqn.compare.aggregate import SharedGames
from atari_dqn.compare.contrast import IDENTICAL, identical_seeds
from atari_dqn.compare.group import Group
from atari_dqn.compare.group_score import GroupScore
from atari_dqn.compare.load import Evaluation
from atari_dqn.compare.protocol_differences import have_other_frames
from atari_dqn.compare.reference.caps import MARK, cut_in_words, stands_for_games
from atari_dqn.compare.reference.studies import HumanRandom
from atari_dqn.formatting import setting, shortened
from atari_dqn.spec.protocol import Protocol

Scored = tuple[Group, GroupScore, GroupScore]
"""A group with its last and its best score."""

_FEW_SEEDS = 3
_SHOWN_KEYS = 4
_CADENCE = (
    "evaluation.light_period_frames",
    "evaluation.full_period_frames",
    "evaluation.light_episodes",
    "evaluation.full_episodes",
)
_ILL_CONDITIONED = {"video_pinball", "double_dunk"}
"""Games on which human scores are close to random, so that a normalised score means little."""


def warnings_of(
    scored: Sequence[Scored], protocols: Mapping[str, Protocol], at_frames: int | None
) -> Iterator[str]:
    """Yield the warnings about single groups, then those about games.

    `at_frames`: the frame at which runs are compared; None for the end of the shortest run of a group.
    """
    for group, last, best in scored:
        yield from _group_warnings(group, last, best)
        if at_frames is None:
            yield from _lengths(group)
    for game in dict.fromkeys(group.game for group, _, _ in scored):
        members = [each for each in scored if each[0].game == game]
        yield from _missing_seeds(game, [group for group, _, _ in members])
        yield from _mixed_protocols(game, [last for _, last, _ in members], protocols)
        yield from _mixed_tracks(game, [group for group, _, _ in members])
        yield from _mixed_frames(game, members)
        yield from _mixed_periods(game, [group for group, _, _ in members])


def warnings_over_games(
    scored: Sequence[Scored],
    normalised: SharedGames,
    improved: SharedGames,
    humans: Mapping[str, HumanRandom],
) -> Iterator[str]:
    """Yield the warnings about the human-normalised scores and the probabilities of improvement.

    `humans`: the human scores by game; games that their table does not contain are absent.
    """
    yield from _not_covered(scored, humans)
    for method, reason in normalised.left_out.items():
        yield f"{method.label} is not human-normalised: {reason}"
    for method, reason in improved.left_out.items():
        if method not in normalised.left_out:  # one reason is enough
            yield f"{method.label} has no probability of improvement: {reason}"
    yield from _notes("human-normalised", normalised)
    if len(improved.methods) > 1 and improved.games != normalised.games:
        yield from _notes("probability of improvement", improved)
    if normalised.games:
        for game in dict.fromkeys(group.game for group, _, _ in scored if group.game not in humans):
            yield f"{game}: the human-normalised scores are without it, because their table lacks it"
    yield from _unequal_frames(scored, normalised)
    for game in sorted(_ILL_CONDITIONED.intersection(normalised.games)):
        yield f"{game}: human scores are close to random, so its normalised score means little"


def _not_covered(scored: Sequence[Scored], humans: Mapping[str, HumanRandom]) -> Iterator[str]:
    """Yield the scores that are compared, but were cut at another cap than the human scores."""
    for group, last, _ in scored:
        human = humans.get(group.game)
        if human is None or not last.comparable or last.is_covered_by(human):
            continue
        caps = {each.max_episode_frames for each in last.evaluations.values() if each.frame_caps}
        cut = ", ".join(sorted(f"{cap:,}" for cap in caps if cap is not None))
        yield (
            f"{group.game} {group.method.label}: {MARK} not human-normalised: games were cut at {cut} "
            f"frames, those of people at {human.cap_frames:,} ({human.table})"
        )


def _unequal_frames(scored: Sequence[Scored], shared: SharedGames) -> Iterator[str]:
    for method in shared.methods:
        of_method = [
            (group, last)
            for group, last, _ in scored
            if group.method == method and group.game in shared.games
        ]
        if have_other_frames(of_method):
            found = ", ".join(f"{group.game} {last.env_frames:,}" for group, last in of_method)
            yield f"{method.label}: its human-normalised scores are after unequal numbers of frames ({found})"


def _notes(about: str, shared: SharedGames) -> Iterator[str]:
    for method in shared.methods:
        yield from (f"{method.label}, {about}: {note}" for note in shared.notes[method])


def _group_warnings(group: Group, last: GroupScore, best: GroupScore) -> Iterator[str]:
    name = f"{group.game} {group.method.label}"
    yield from (f"{name}: {note}" for note in group.notes)
    yield from (
        f"{name}: seed {seed} {reason}; it is not in the scores" for seed, reason in last.absent.items()
    )
    for seed, reason in best.absent.items():
        if seed not in last.absent:
            yield f"{name}: seed {seed} {reason}; it is not in the best"
    if not last.n:
        unfinished = not any(run.finished for run in group.runs)
        evaluated = min(run.evaluated_frames for run in group.runs) if unfinished else 0
        remedy = f"; `--at {evaluated:_}` compares what all of its runs have" if evaluated else ""
        yield f"{name}: no run has a score here{remedy}"
    elif last.n < _FEW_SEEDS:
        yield f"{name}: n = {last.n}: fewer than {_FEW_SEEDS} seeds say little about the spread"
    for seeds in identical_seeds(group.runs):
        yield f"{name}: seeds {', '.join(map(str, seeds))} are {IDENTICAL}"
    yield from _cut(name, last, best)
    if group.method.track_label.endswith("*"):
        deviations = shortened(group.deviations, _SHOWN_KEYS)
        yield f"{name}: marked {group.method.track_label}: deviates in {deviations}"


def _cut(name: str, last: GroupScore, best: GroupScore) -> Iterator[str]:
    """Yield how many games of the last scores, or else of the best, the frame cap truncated."""
    scored, which = (last, "") if last.frame_caps else (best, "of the best evaluations, ")
    by_cap: dict[int | None, list[Evaluation]] = {}
    for evaluation in scored.evaluations.values():
        by_cap.setdefault(evaluation.max_episode_frames, []).append(evaluation)
    for cap, evaluations in by_cap.items():
        cut = sum(each.frame_caps for each in evaluations)
        if cut:
            played = sum(each.episodes for each in evaluations)
            apart = "" if stands_for_games(cut, cap) else ": not normalised, aggregated or compared"
            yield f"{name}: {MARK} {which}{cut_in_words(cut, played, cap)}{apart}"


def _lengths(group: Group) -> Iterator[str]:
    ends = {run.final_frames for run in group.runs if run.finished}
    if ends and max(ends) - min(ends) >= group.runs[0].iteration_frames:
        lengths = ", ".join(f"{frames:,}" for frames in sorted(ends))
        yield (
            f"{group.game} {group.method.label}: finished runs are of unequal length ({lengths} frames): "
            "all are compared at the shortest"
        )


def _seeds(seeds: Sequence[int]) -> str:
    return "seed" if len(seeds) == 1 else "seeds"


def _missing_seeds(game: str, groups: Sequence[Group]) -> Iterator[str]:
    every = {run.seed for group in groups for run in group.runs}
    for group in groups:
        missing = sorted(every - {run.seed for run in group.runs})
        if missing:
            seeds = ", ".join(str(seed) for seed in missing)
            yield f"{game} {group.method.label}: without {_seeds(missing)} {seeds}, which other groups have"


def _mixed_protocols(
    game: str, scores: Sequence[GroupScore], protocols: Mapping[str, Protocol]
) -> Iterator[str]:
    digests = list(dict.fromkeys(digest for score in scores for digest in score.protocol_digests))
    unknown = [digest for digest in digests if digest not in protocols]
    if unknown:
        yield f"{game}: protocol {', '.join(unknown)} is in no run's provenance: its scores may not compare"
    known = [asdict(protocols[digest]) for digest in digests if digest in protocols]
    fields = [field for field in (known[0] if known else ()) if len({each[field] for each in known}) > 1]
    if fields:
        values = "; ".join(
            f"{field} {' | '.join(setting(v) for v in dict.fromkeys(e[field] for e in known))}"
            for field in fields
        )
        yield f"{game}: scores of different protocols are in one table ({values})"


def _mixed_tracks(game: str, groups: Sequence[Group]) -> Iterator[str]:
    tracks = sorted({group.method.track_label.rstrip("*") for group in groups})
    if len(tracks) > 1:
        yield f"{game}: tracks {' and '.join(tracks)} are in one table; no single claim covers both"


def _mixed_frames(game: str, members: Sequence[Scored]) -> Iterator[str]:
    scored = [(group, last) for group, last, _ in members if last.n]
    if scored and have_other_frames(scored):
        values = " | ".join(f"{each:,}" for each in sorted({last.env_frames for _, last in scored}))
        yield f"{game}: scores after different numbers of frames are in one table ({values})"


def _mixed_periods(game: str, groups: Sequence[Group]) -> Iterator[str]:
    """Yield that a maximum over evaluations, or the first above a score, depends on how many there are."""
    found = {tuple(group.runs[0].values.get(key) for key in _CADENCE) for group in groups}
    if len(found) > 1:
        keys = [key for place, key in enumerate(_CADENCE) if len({each[place] for each in found}) > 1]
        yield (
            f"{game}: groups differ in {', '.join(keys)}: the best score and the time to a score favour "
            "the group with more evaluations, or with fewer games in each"
        )
