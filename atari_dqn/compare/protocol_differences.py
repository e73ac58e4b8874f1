"""Find what keeps the scores of two groups from one claim: tracks, frames, fields of their protocols."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields

from atari_dqn.compare.group import Group
from atari_dqn.compare.group_score import GroupScore
from atari_dqn.formatting import setting
from atari_dqn.spec.protocol import Protocol

ScoredGroup = tuple[Group, GroupScore]
"""A group with its last score."""

_MAY_DIFFER = {
    "training_terminal_on_life_loss",  # training alone: a part of the method
    "training_max_abs_reward",
    "episodes",  # more episodes reduce the noise
    "ale_version",  # the ROM must not differ, and versions of the emulator play it alike; a caveat names both
    "checkpoint",  # `current` and `last` are both the weights at the frame of the score
}
_CAP = "max_episode_frames"


def obstacles(ours: ScoredGroup, theirs: ScoredGroup) -> tuple[str, ...]:
    """Return why no claim covers the scores of both groups: other tracks, frames or protocols.

    Empty if there is no reason. Frames may differ by what an evaluation may be late.
    """
    return (*_other_tracks(ours, theirs), *_other_frames(ours, theirs), *protocol_differences(ours, theirs))


def _other_tracks(ours: ScoredGroup, theirs: ScoredGroup) -> Iterator[str]:
    left, right = (group.method.track_label.rstrip("*") for group, _ in (ours, theirs))
    if left != right:
        yield f"track {left}, there {right}"


def _other_frames(ours: ScoredGroup, theirs: ScoredGroup) -> Iterator[str]:
    if have_other_frames([ours, theirs]):
        yield f"after {ours[1].env_frames:,} frames, there {theirs[1].env_frames:,}"


def have_other_frames(scored: Sequence[ScoredGroup]) -> bool:
    """Return whether scores are after frames that differ by more than an evaluation may be late."""
    frames = [last.env_frames for _, last in scored]
    return max(frames) - min(frames) >= max(group.runs[0].iteration_frames for group, _ in scored)


def protocol_differences(ours: ScoredGroup, theirs: ScoredGroup) -> tuple[str, ...]:
    """Return each field that differs, as text: `sticky_probability 0.25, there 0`; empty for one protocol.

    A larger cap is no difference if no game reached the smaller one, nor is ε if one of the two explores by
    noisy layers, which take its place. Protocols that no provenance records are compared by fingerprint.
    """
    left, right = _protocols(ours), _protocols(theirs)
    if left is None or right is None:
        return tuple(_difference("protocol", _digests(ours), _digests(theirs)))
    allowed = set(_MAY_DIFFER)
    if _cap_has_no_effect(ours, theirs):
        allowed.add(_CAP)
    if _is_noisy(ours) != _is_noisy(theirs):
        allowed.add("epsilon")
    compared = [field.name for field in fields(Protocol) if field.name not in allowed]
    return tuple(
        text for name in compared for text in _difference(name, _values(left, name), _values(right, name))
    )


def _protocols(scored: ScoredGroup) -> list[Protocol] | None:
    """Return the protocols of a group's scores; None if one of them is not known."""
    known = {digest: protocol for run in scored[0].runs for digest, protocol in run.protocols.items()}
    digests = _digests(scored)
    return [known[digest] for digest in digests] if known.keys() >= set(digests) else None


def _digests(scored: ScoredGroup) -> list[str]:
    """Return the fingerprints of a group's scores, or else, without a score, of all of its evaluations."""
    group, last = scored
    every = (evaluation.protocol_digest for run in group.runs for evaluation in run.evaluations)
    return last.protocol_digests or list(dict.fromkeys(every))


def _is_noisy(scored: ScoredGroup) -> bool:
    return bool(scored[0].runs[0].values["toggles.noisy"])


def _cap_has_no_effect(ours: ScoredGroup, theirs: ScoredGroup) -> bool:
    """Return whether no score of the group with the smaller cap has a game that reached it."""
    smaller = min((ours, theirs), key=_smallest_cap)
    return smaller[1].frame_caps == 0


def _smallest_cap(scored: ScoredGroup) -> int:
    return min((each.max_episode_frames or 0 for each in scored[1].evaluations.values()), default=0)


def _values(protocols: Sequence[Protocol], name: str) -> list[str]:
    return list(dict.fromkeys(_formatted(getattr(protocol, name)) for protocol in protocols))


def _formatted(value: bool | int | float | str) -> str:
    return f"{value:g}" if isinstance(value, float) else setting(value) or "none"


def _difference(name: str, ours: Sequence[str], theirs: Sequence[str]) -> Iterator[str]:
    if set(ours) != set(theirs):
        yield f"{name} {' | '.join(ours)}, there {' | '.join(theirs)}"
