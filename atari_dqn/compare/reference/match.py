"""Which published figures a score may stand beside, and in what they differ from it.

A figure without differences is of the same protocol, and only such a one can give a verdict. Fields that a
source does not state are not compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from itertools import pairwise

from atari_dqn.compare.reference.caps import stands_for_games
from atari_dqn.compare.reference.tables import Figure, Measure, Study, curves, studies
from atari_dqn.spec.protocol import Protocol

_BESIDE = "dqn"
"""The agent that one without figures of its own is shown beside."""
_WORDS = {
    "sticky_probability": "sticky",
    "noop_max_frames": "no-ops",
    "max_episode_frames": "cap",
    "epsilon": "ε",
    "full_action_set": "all 18 actions",
    "frame_skip": "skip",
    "resize": "resize",
    "screen_size_pixels": "screen",
    "training_terminal_on_life_loss": "life loss terminal in training",
    "training_max_abs_reward": "rewards within",
}
"""The fields that decide whether scores compare, in few words. The number of episodes decides noise only."""


@dataclass(frozen=True, kw_only=True)
class Subject:
    """What a score is a score of."""

    game: str
    agent: str
    """As `agent_name` says it."""
    protocol: Protocol
    measure: Measure = "evaluation"
    cap_reached: bool = True
    """Whether an episode was cut by the cap. Where none was, caps above it would change nothing."""


@dataclass(frozen=True, kw_only=True)
class Reference:
    """A published score after so many frames, and what keeps it from being of the subject's protocol."""

    study: Study
    agent: str
    env_frames: int
    mean: float
    lowest: float | None
    highest: float | None
    n: int | None
    between_frames: tuple[int, int] | None
    """The published points that the figure is interpolated between; None at one of them."""
    differences: tuple[str, ...]
    """In words; empty for the same protocol."""

    def verdict(self, score: float) -> str:
        """Return `below`, `on track` or `above` the reference's seeds; empty where they cannot tell."""
        if self.differences or self.lowest is None or self.highest is None or (self.n or 0) < 2:
            return ""
        return "below" if score < self.lowest else "above" if score > self.highest else "on track"


def score(
    game: str, env_frames: int, protocol: Protocol, *, agent: str = _BESIDE, cap_reached: bool = True
) -> Reference | None:
    """Return the published evaluation score nearest in protocol to one after `env_frames`; None without."""
    return nearest(Subject(game=game, agent=agent, protocol=protocol), env_frames, cap_reached=cap_reached)


def nearest(subject: Subject, env_frames: int, *, cap_reached: bool = True) -> Reference | None:
    """Return the published score of fewest differences from a subject's after so many frames.

    Of figures that differ in equally many things the first of sources.toml counts. What was published of
    other frames alone, such as a paper's final score, is not near.
    """
    subject = replace(subject, cap_reached=cap_reached)
    found = (each for each in references(subject, env_frames) if each.env_frames == env_frames)
    return min(found, key=lambda each: len(each.differences), default=None)


def references(subject: Subject, env_frames: int) -> Iterator[Reference]:
    """Yield what each study has for a subject after `env_frames`: its own agent's, else plain DQN's.

    Between two published points of a curve a figure is interpolated; outside of them there is none. A single
    figure is given whatever the frames, and they are among its differences. A score of games that were cut at
    a length that no study has stands beside none.
    """
    if not stands_for_games(subject.cap_reached, subject.protocol.max_episode_frames):
        return
    for study, curve in _curves(subject):
        figure = (curve[0], None) if len(curve) == 1 else _at(curve, env_frames)
        if figure is None:
            continue
        point, between = figure
        yield Reference(
            study=study,
            agent=point.agent,
            env_frames=point.env_frames,
            mean=point.mean,
            lowest=point.lowest,
            highest=point.highest,
            n=point.n,
            between_frames=between,
            differences=(*differences(subject, study, point.agent), *_other_frames(point, env_frames)),
        )


def differences(subject: Subject, study: Study, agent: str) -> Iterator[str]:
    """Yield what keeps a study's figures from being of the subject's protocol, in words."""
    if agent != subject.agent:
        yield f"agent {agent}"
    if study.network != "nature":
        yield f"{study.network} network"
    if study.measure != subject.measure:
        yield f"returns of {study.measure} games"
    if (study.weights == "best") != (subject.protocol.checkpoint == "best"):
        yield f"{study.weights} weights"
    ours = asdict(subject.protocol)
    for field, theirs in study.protocol.items():
        if field in _WORDS and ours[field] != theirs and not _unreached_cap(subject, field, theirs):
            yield f"{_WORDS[field]} {_shown(theirs)}"


def _other_frames(figure: Figure, env_frames: int) -> Iterator[str]:
    if figure.env_frames != env_frames:
        yield f"after {figure.env_frames:,} frames"


def _unreached_cap(subject: Subject, field: str, theirs: int) -> bool:
    is_larger_cap = field == "max_episode_frames" and theirs > subject.protocol.max_episode_frames
    return is_larger_cap and not subject.cap_reached


def _curves(subject: Subject) -> Iterator[tuple[Study, tuple[Figure, ...]]]:
    """Yield each study, in the order of sources.toml, with its curve of the subject's agent or of DQN."""
    found = curves(subject.game)
    for name, study in studies().items():
        points = found.get((name, subject.agent)) or found.get((name, _BESIDE))
        if points:
            yield study, points


def _at(points: tuple[Figure, ...], env_frames: int) -> tuple[Figure, tuple[int, int] | None] | None:
    for figure in points:
        if figure.env_frames == env_frames:
            return figure, None
    for left, right in pairwise(points):
        if left.env_frames < env_frames < right.env_frames:
            return _between(left, right, env_frames), (left.env_frames, right.env_frames)
    return None


def _between(left: Figure, right: Figure, env_frames: int) -> Figure:
    """Return the figure on the straight lines between two; n is the smaller one."""
    share = (env_frames - left.env_frames) / (right.env_frames - left.env_frames)
    return Figure(
        study=left.study,
        agent=left.agent,
        game=left.game,
        env_frames=env_frames,
        mean=left.mean + share * (right.mean - left.mean),
        lowest=_mixed(left.lowest, right.lowest, share),
        highest=_mixed(left.highest, right.highest, share),
        n=min(left.n, right.n) if left.n and right.n else None,
    )


def _mixed(left: float | None, right: float | None, share: float) -> float | None:
    return None if left is None or right is None else left + share * (right - left)


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return (
        f"{value:,}" if isinstance(value, int) else f"{value:g}" if isinstance(value, float) else str(value)
    )
