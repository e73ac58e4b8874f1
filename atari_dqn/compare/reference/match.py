"""Find the published figures to compare a score with, and the differences of their protocols.

Only a figure without differences, that is one of the same protocol, gives a verdict. Fields that a source
does not state are not compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise

from atari_dqn.compare.reference.caps import stands_for_games
from atari_dqn.compare.reference.studies import Figure, Measure, Study, curves, studies
from atari_dqn.formatting import count
from atari_dqn.spec.protocol import Protocol

_FALLBACK_AGENT = "dqn"
"""The agent whose figures are shown for an agent of which nothing similar was published."""
_WORDS = {
    "sticky_probability": "sticky",
    "flicker_probability": "flicker",
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
"""Short names of the protocol fields that must agree. The number of episodes affects only the noise."""
_OF_EVERY_STUDY = {"flicker_probability": 0.0, "full_action_set": False}
"""Fields that a study states only where it has another value."""


@dataclass(frozen=True, kw_only=True)
class Subject:
    """The game, agent and protocol that a score belongs to."""

    game: str
    agent: str
    """The name that `agent_name` returns."""
    protocol: Protocol
    measure: Measure = "evaluation"
    cap_reached: bool = True
    """Whether the cap truncated an episode. If not, a larger cap would have changed nothing."""
    is_averaged: bool = False
    """Whether the score is averaged over the frames over which a figure is, not that of one evaluation."""
    late_frames: int = 1
    """Emulator frames of an iteration: an evaluation that is late by less counts as one when it was due."""

    def counts_at(self, due_frames: int, env_frames: int) -> bool:
        """Return whether a score after `env_frames` counts as one after `due_frames`."""
        return 0 <= env_frames - due_frames < self.late_frames


@dataclass(frozen=True, kw_only=True)
class Reference:
    """A published score after `env_frames`, and the differences from the protocol of the subject."""

    study: Study
    agent: str
    env_frames: int
    mean: float
    lowest: float | None
    highest: float | None
    n: int | None
    between_frames: tuple[int, int] | None
    """The published points between which the figure is interpolated; None if it is itself published."""
    differences: tuple[str, ...]
    """Differences as text; empty for the same protocol."""

    @property
    def window(self) -> tuple[int, int] | None:
        """The frames over which the figure is averaged, from and to; None for a single evaluation."""
        averaging = self.study.averaging
        return None if averaging is None else averaging.window(self.env_frames)

    @property
    def frames_text(self) -> str:
        """The frames as text; if the figure is interpolated, with the frames of the published ones."""
        text = count(self.env_frames)
        if self.between_frames is None:
            return text
        return f"{text}, between {' and '.join(map(count, self.between_frames))}"

    def verdict(self, score: float) -> str:
        """Return whether a score is `below`, `on track` (within) or `above` the range of the published seeds.

        Empty for another protocol or without a range of at least two seeds.
        """
        if self.differences or self.lowest is None or self.highest is None or (self.n or 0) < 2:
            return ""
        return "below" if score < self.lowest else "above" if score > self.highest else "on track"


def nearest(subject: Subject, env_frames: int, *, cap_reached: bool = True) -> Reference | None:
    """Return the published score at `env_frames` with the fewest differences; None if there is none.

    Ties are broken by the order of sources.toml. A score that was published for other frames only, such as
    the final score of a paper, does not count.
    """
    subject = replace(subject, cap_reached=cap_reached)
    found = (
        each for each in references(subject, env_frames) if subject.counts_at(each.env_frames, env_frames)
    )
    return min(found, key=lambda each: len(each.differences), default=None)


def references(subject: Subject, env_frames: int) -> Iterator[Reference]:
    """Yield for each study the score of the subject's agent after `env_frames`, or else of the nearest one.

    A figure between two published points of a curve is interpolated; outside the curve there is none. A study
    with a single figure always yields it, and other frames are among its differences. Nothing is yielded for
    a score of games that were truncated at a cap that no study has.
    """
    if not stands_for_games(subject.cap_reached, subject.protocol.max_episode_frames):
        return
    for study, curve in _curves(subject):
        due = (each.env_frames for each in curve if subject.counts_at(each.env_frames, env_frames))
        frames = next(due, env_frames)
        figure = (curve[0], None) if len(curve) == 1 else figure_at(curve, frames)
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
            differences=(
                *differences(subject, study, point.agent),
                *_other_frames(point, frames),
                *_other_span(subject, study, point),
            ),
        )


def differences(subject: Subject, study: Study, agent: str) -> Iterator[str]:
    """Yield the differences between the protocols of a study and a subject, as text."""
    theirs = study.agent_name(agent)
    if theirs != subject.agent:
        yield f"agent {theirs}"
    if study.measure != subject.measure:
        yield f"returns of {study.measure} games"
    if (study.weights == "best") != (subject.protocol.checkpoint == "best"):
        yield f"{study.weights} weights"
    ours = asdict(subject.protocol)
    for field, value in {**_OF_EVERY_STUDY, **study.protocol}.items():
        if field in _WORDS and ours[field] != value and not _unreached_cap(subject, field, value):
            yield f"{_WORDS[field]} {_formatted(value)}"


def _other_frames(figure: Figure, env_frames: int) -> Iterator[str]:
    if figure.env_frames != env_frames:
        yield f"after {figure.env_frames:,} frames"


def _other_span(subject: Subject, study: Study, figure: Figure) -> Iterator[str]:
    window = None if study.averaging is None else study.averaging.window(figure.env_frames)
    if window is not None and not subject.is_averaged:
        yield span_text(window)


def span_text(window: tuple[int, int]) -> str:
    """Format the frames over which a figure is averaged."""
    return f"mean over {frames_text(window)}"


def frames_text(window: tuple[int, int]) -> str:
    """Format a range of emulator frames."""
    return f"{' to '.join(map(count, window))} frames"


def _unreached_cap(subject: Subject, field: str, theirs: int) -> bool:
    is_larger_cap = field == "max_episode_frames" and theirs > subject.protocol.max_episode_frames
    return is_larger_cap and not subject.cap_reached


def _curves(subject: Subject) -> Iterator[tuple[Study, tuple[Figure, ...]]]:
    """Yield each study, in the order of sources.toml, with the curve to compare the subject's agent with."""
    found = curves(subject.game)
    for name, study in studies().items():
        agents = [agent for study_name, agent in found if study_name == name]
        agent = _nearest_agent(subject, study, agents)
        if agent is not None:
            yield study, found[name, agent]


def _nearest_agent(subject: Subject, study: Study, agents: Sequence[str]) -> str | None:
    """Select the agent of a study that is the subject's, or has the first part of its name, or else DQN."""
    same = [agent for agent in agents if study.agent_name(agent) == subject.agent]
    first_part = subject.agent.partition(", ")[0]
    return next((agent for agent in (*same, first_part, _FALLBACK_AGENT) if agent in agents), None)


def figure_at(points: tuple[Figure, ...], env_frames: int) -> tuple[Figure, tuple[int, int] | None] | None:
    """Return the figure of a curve at some frames, and the two between which it is interpolated, if it is.

    None outside the curve.
    """
    for figure in points:
        if figure.env_frames == env_frames:
            return figure, None
    for left, right in pairwise(points):
        if left.env_frames < env_frames < right.env_frames:
            return _between(left, right, env_frames), (left.env_frames, right.env_frames)
    return None


def _between(left: Figure, right: Figure, env_frames: int) -> Figure:
    """Interpolate linearly between two figures; n is the smaller of theirs."""
    share = (env_frames - left.env_frames) / (right.env_frames - left.env_frames)
    return Figure(
        study=left.study,
        agent=left.agent,
        game=left.game,
        env_frames=env_frames,
        mean=left.mean + share * (right.mean - left.mean),
        lowest=_interpolated(left.lowest, right.lowest, share),
        highest=_interpolated(left.highest, right.highest, share),
        n=min(left.n, right.n) if left.n and right.n else None,
    )


def _interpolated(left: float | None, right: float | None, share: float) -> float | None:
    return None if left is None or right is None else left + share * (right - left)


def _formatted(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return (
        f"{value:,}" if isinstance(value, int) else f"{value:g}" if isinstance(value, float) else str(value)
    )
