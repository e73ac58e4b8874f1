"""Collect the caveats of a comparison: warnings that qualify its scores."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

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


@dataclass(frozen=True)
class Caveat:
    """A warning about a group, a game, a method or, without either, the comparison."""

    text: str
    game: str = ""
    method: str = ""
    """The label of the method."""

    def __str__(self) -> str:
        subject = " ".join(filter(None, (self.game, self.method)))
        return f"{subject}: {self.text}" if subject else self.text


def merged(caveats: Iterable[Caveat], num_groups: int) -> Iterator[str]:
    """Format caveats; several groups that have the same one are listed in front of it.

    `num_groups`: the number of groups that are compared.
    """
    groups: dict[str, list[Caveat]] = defaultdict(list)
    for caveat in dict.fromkeys(caveats):
        groups[caveat.text if caveat.game and caveat.method else str(caveat)].append(caveat)
    for text, sharing in groups.items():
        if len(sharing) == 1:
            yield str(sharing[0])
        elif len(sharing) == num_groups:
            yield f"all groups: {text}"
        else:
            yield f"{_subjects(sharing)}: {text}"


def _subjects(caveats: Sequence[Caveat]) -> str:
    """List groups by game: `pong dqn · c51; breakout dqn`. A label may contain commas."""
    by_game: dict[str, list[str]] = defaultdict(list)
    for caveat in caveats:
        by_game[caveat.game].append(caveat.method)
    return "; ".join(f"{game} {' · '.join(methods)}" for game, methods in by_game.items())


def warnings_of(
    scored: Sequence[Scored], protocols: Mapping[str, Protocol], at_frames: int | None
) -> Iterator[Caveat]:
    """Yield the warnings about single groups, then those about games.

    `at_frames`: the frame at which runs are compared; None for the end of the shortest run of a group.
    """
    for group, last, best in scored:
        yield from _group_warnings(group, last, best)
        if at_frames is None:
            yield from _lengths(group)
    for game in dict.fromkeys(group.game for group, _, _ in scored):
        members = [each for each in scored if each[0].game == game]
        yield from _missing_seeds([group for group, _, _ in members])
        yield from _mixed_protocols(game, [last for _, last, _ in members], protocols)
        yield from _mixed_tracks(game, [group for group, _, _ in members])
        yield from _mixed_frames(game, members)
        yield from _mixed_periods(game, [group for group, _, _ in members])


def warnings_over_games(
    scored: Sequence[Scored],
    normalised: SharedGames,
    improved: SharedGames,
    humans: Mapping[str, HumanRandom],
) -> Iterator[Caveat]:
    """Yield the warnings about the human-normalised scores and the probabilities of improvement.

    `humans`: the human scores by game; games that their table does not contain are absent.
    """
    yield from _not_covered(scored, humans)
    for method, reason in normalised.left_out.items():
        yield Caveat(f"not human-normalised: {reason}", method=method.label)
    for method, reason in improved.left_out.items():
        if method not in normalised.left_out:  # one reason is enough
            yield Caveat(f"no probability of improvement: {reason}", method=method.label)
    yield from _notes("human-normalised", normalised)
    if len(improved.methods) > 1 and improved.games != normalised.games:
        yield from _notes("probability of improvement", improved)
    if normalised.games:
        for game in dict.fromkeys(group.game for group, _, _ in scored if group.game not in humans):
            text = "the human-normalised scores are without it, because their table lacks it"
            yield Caveat(text, game=game)
    yield from _unequal_frames(scored, normalised)
    for game in sorted(_ILL_CONDITIONED.intersection(normalised.games)):
        yield Caveat("human scores are close to random, so its normalised score means little", game=game)


def _not_covered(scored: Sequence[Scored], humans: Mapping[str, HumanRandom]) -> Iterator[Caveat]:
    """Yield the scores that are compared, but were cut at another cap than the human scores."""
    for group, last, _ in scored:
        human = humans.get(group.game)
        if human is None or not last.comparable or last.is_covered_by(human):
            continue
        caps = {each.max_episode_frames for each in last.evaluations.values() if each.frame_caps}
        cut = ", ".join(sorted(f"{cap:,}" for cap in caps if cap is not None))
        yield _about(
            group,
            f"{MARK} not human-normalised: games were cut at {cut} frames, those of people at "
            f"{human.cap_frames:,} ({human.table})",
        )


def _about(group: Group, text: str) -> Caveat:
    return Caveat(text, game=group.game, method=group.method.label)


def _unequal_frames(scored: Sequence[Scored], shared: SharedGames) -> Iterator[Caveat]:
    for method in shared.methods:
        of_method = [
            (group, last)
            for group, last, _ in scored
            if group.method == method and group.game in shared.games
        ]
        if have_other_frames(of_method):
            found = ", ".join(f"{group.game} {last.env_frames:,}" for group, last in of_method)
            text = f"its human-normalised scores are after unequal numbers of frames ({found})"
            yield Caveat(text, method=method.label)


def _notes(about: str, shared: SharedGames) -> Iterator[Caveat]:
    for method in shared.methods:
        yield from (Caveat(f"{about}: {note}", method=method.label) for note in shared.notes[method])


def _group_warnings(group: Group, last: GroupScore, best: GroupScore) -> Iterator[Caveat]:
    yield from (_about(group, text) for text in (*group.notes, *_remarks(group, last, best)))


def _remarks(group: Group, last: GroupScore, best: GroupScore) -> Iterator[str]:
    """Yield the remarks on the scores of a group."""
    yield from (f"seed {seed} {reason}; it is not in the scores" for seed, reason in last.absent.items())
    for seed, reason in best.absent.items():
        if seed not in last.absent:
            yield f"seed {seed} {reason}; it is not in the best"
    if not last.n:
        unfinished = not any(run.finished for run in group.runs)
        evaluated = min(run.evaluated_frames for run in group.runs) if unfinished else 0
        place = f"`--at {evaluated:_}`, in Python `at_frames={evaluated:_}`,"
        remedy = f"; {place} compares what all of its runs have" if evaluated else ""
        yield f"no run has a score here{remedy}"
    elif last.n < _FEW_SEEDS:
        yield f"n = {last.n}: fewer than {_FEW_SEEDS} seeds say little about the spread"
    for seeds in identical_seeds(group.runs):
        yield f"seeds {', '.join(map(str, seeds))} are {IDENTICAL}"
    yield from _cut(last, best)
    if group.method.track_label.endswith("*"):
        yield f"marked {group.method.track_label}: deviates in {shortened(group.deviations, _SHOWN_KEYS)}"


def _cut(last: GroupScore, best: GroupScore) -> Iterator[str]:
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
            yield f"{MARK} {which}{cut_in_words(cut, played, cap)}{apart}"


def _lengths(group: Group) -> Iterator[Caveat]:
    ends = {run.final_frames for run in group.runs if run.finished}
    if ends and max(ends) - min(ends) >= group.runs[0].iteration_frames:
        lengths = ", ".join(f"{frames:,}" for frames in sorted(ends))
        text = f"finished runs are of unequal length ({lengths} frames): all are compared at the shortest"
        yield _about(group, text)


def _seeds(seeds: Sequence[int]) -> str:
    return "seed" if len(seeds) == 1 else "seeds"


def _missing_seeds(groups: Sequence[Group]) -> Iterator[Caveat]:
    every = {run.seed for group in groups for run in group.runs}
    for group in groups:
        missing = sorted(every - {run.seed for run in group.runs})
        if missing:
            seeds = ", ".join(str(seed) for seed in missing)
            yield _about(group, f"without {_seeds(missing)} {seeds}, which other groups have")


def _mixed_protocols(
    game: str, scores: Sequence[GroupScore], protocols: Mapping[str, Protocol]
) -> Iterator[Caveat]:
    digests = list(dict.fromkeys(digest for score in scores for digest in score.protocol_digests))
    unknown = [digest for digest in digests if digest not in protocols]
    if unknown:
        text = f"protocol {', '.join(unknown)} is in no run's provenance: its scores may not compare"
        yield Caveat(text, game=game)
    known = [asdict(protocols[digest]) for digest in digests if digest in protocols]
    fields = [field for field in (known[0] if known else ()) if len({each[field] for each in known}) > 1]
    if fields:
        values = "; ".join(
            f"{field} {' | '.join(setting(v) for v in dict.fromkeys(e[field] for e in known))}"
            for field in fields
        )
        yield Caveat(f"scores of different protocols are in one table ({values})", game=game)


def _mixed_tracks(game: str, groups: Sequence[Group]) -> Iterator[Caveat]:
    tracks = sorted({group.method.track_label.rstrip("*") for group in groups})
    if len(tracks) > 1:
        text = f"tracks {' and '.join(tracks)} are in one table; no single claim covers both"
        yield Caveat(text, game=game)


def _mixed_frames(game: str, members: Sequence[Scored]) -> Iterator[Caveat]:
    scored = [(group, last) for group, last, _ in members if last.n]
    if scored and have_other_frames(scored):
        values = " | ".join(f"{each:,}" for each in sorted({last.env_frames for _, last in scored}))
        yield Caveat(f"scores after different numbers of frames are in one table ({values})", game=game)


def _mixed_periods(game: str, groups: Sequence[Group]) -> Iterator[Caveat]:
    """Yield that a maximum over evaluations, or the first above a score, depends on how many there are."""
    found = {tuple(group.runs[0].values.get(key) for key in _CADENCE) for group in groups}
    if len(found) > 1:
        keys = [key for place, key in enumerate(_CADENCE) if len({each[place] for each in found}) > 1]
        text = (
            f"groups differ in {', '.join(keys)}: the best score and the time to a score favour the group "
            "with more evaluations, or with fewer games in each"
        )
        yield Caveat(text, game=game)
