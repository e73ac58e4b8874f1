"""Compare the scores of a group with published scores of its agent and game."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from atari_dqn.compare.averages import mean_in_window
from atari_dqn.compare.group import Group
from atari_dqn.compare.group_score import GroupScore
from atari_dqn.compare.load import Run
from atari_dqn.compare.reference.match import Reference, Subject, frames_text, references, span_text
from atari_dqn.compare.reference.studies import Measure
from atari_dqn.formatting import score as formatted
from atari_dqn.spec.protocol import Protocol

_SHOWN_OTHERS = 2
"""The largest number of figures of other protocols that are shown, nearest first."""


@dataclass(frozen=True, kw_only=True)
class ComparedReference:
    """A published score, and the score of the group by the same measure."""

    reference: Reference
    measure: Measure
    score: float
    """The mean over the seeds of the group."""
    n: int
    """Number of these seeds."""
    verdict: str
    """As `Reference.verdict` returns it."""
    window: tuple[int, int] | None
    """The frames over which `score` is averaged, as the published one is; None for the score of a moment."""

    @property
    def score_text(self) -> str:
        """The score of the group, with the frames over which it is averaged."""
        over = "" if self.window is None else f" over {frames_text(self.window)}"
        return f"{formatted(self.score)}{over}"


def compared_references(group: Group, last: GroupScore, best: GroupScore) -> tuple[ComparedReference, ...]:
    """Return the published scores of the group's protocol, or else the nearest ones of other protocols."""
    every = sorted(_every(group, last, best), key=lambda each: len(each.reference.differences))
    same = [each for each in every if not each.reference.differences]
    return tuple(same or every[:_SHOWN_OTHERS])


def _every(group: Group, last: GroupScore, best: GroupScore) -> Iterator[ComparedReference]:
    protocol = protocol_of(group, last)
    if protocol is None:
        return
    yield from _figures(group, last, protocol, "evaluation", last.estimates["mean"].value, last.env_frames)
    yield from _of_training(group, last, protocol)
    if best.n == last.n:
        best_protocol = replace(protocol, checkpoint="best")
        yield from _figures(
            group, best, best_protocol, "evaluation", best.estimates["mean"].value, last.env_frames
        )


def _of_training(group: Group, last: GroupScore, protocol: Protocol) -> Iterator[ComparedReference]:
    """Yield the published returns of training games; nothing if those of the group mix different ε."""
    if group.runs[0].values["exploration.kind"] != "linear":
        return
    trained = [run.training_returns.at(last.env_frames) for run in group.runs if run.seed in last.evaluations]
    if not any(map(math.isnan, trained)):
        mean = sum(trained) / len(trained)
        yield from _figures(group, last, _training(group, protocol), "training", mean, last.env_frames)


def _figures(
    group: Group, own: GroupScore, protocol: Protocol, measure: Measure, score: float, env_frames: int
) -> Iterator[ComparedReference]:
    subject = Subject(
        game=group.game,
        agent=group.method.agent,
        protocol=protocol,
        measure=measure,
        cap_reached=measure == "training" or bool(own.frame_caps),
        is_averaged=True,
        late_frames=group.runs[0].iteration_frames,
    )
    for reference in references(subject, env_frames):
        is_best = reference.study.weights == "best"
        if reference.study.measure == measure and is_best == (protocol.checkpoint == "best"):
            yield _compared(group, own, reference, measure, score)


def _compared(
    group: Group, own: GroupScore, reference: Reference, measure: Measure, score: float
) -> ComparedReference:
    """Compare a figure with a score, or with that of the frames over which the figure is averaged."""
    window = None
    if reference.window is not None:
        runs = [run for run in group.runs if run.seed in own.evaluations]
        cap_reached = bool(own.frame_caps)
        found = mean_in_window(runs, measure, reference.window, cap_reached=cap_reached)
        if isinstance(found, str):
            reference = replace(reference, differences=(*reference.differences, found))
        elif math.isnan(found):
            reference = _beyond_the_runs(reference, runs, measure, cap_reached=cap_reached)
        else:
            score, window = found, reference.window
    return ComparedReference(
        reference=reference,
        measure=measure,
        score=score,
        n=own.n,
        verdict=reference.verdict(score),
        window=window,
    )


def _beyond_the_runs(
    reference: Reference, runs: Sequence[Run], measure: Measure, *, cap_reached: bool
) -> Reference:
    """Add to the differences that a figure is a mean over frames that the runs do not all reach.

    If nothing else differs, it names the last frames before at which runs of this length can be compared.
    """
    averaging = reference.study.averaging
    assert averaging is not None
    assert reference.window is not None
    difference = span_text(reference.window)
    earlier = min(run.evaluated_frames for run in runs) - averaging.within_frames
    earlier -= earlier % max(run.evaluation_period_frames for run in runs)
    if not reference.differences and 0 < earlier < reference.env_frames:
        window = averaging.window(earlier)
        found = 0.0 if window is None else mean_in_window(runs, measure, window, cap_reached=cap_reached)
        if not isinstance(found, str) and not math.isnan(found):
            difference = f"{difference} (earlier: `dqn compare --at {earlier:,}`)"
    return replace(reference, differences=(*reference.differences, difference))


def protocol_of(group: Group, last: GroupScore) -> Protocol | None:
    """Return the protocol of a group's scores; None if it is unknown or not the same for all seeds.

    `current` and `last` weights are one protocol: both are the weights at the frame of the score. Nor do the
    number of episodes and the version of the emulator count, which are those of the first seed.
    """
    known = {digest: protocol for run in group.runs for digest, protocol in run.protocols.items()}
    if not last.n or not known.keys() >= set(last.protocol_digests):
        return None
    first, *others = (replace(known[digest], checkpoint="last") for digest in last.protocol_digests)
    alike = (replace(each, episodes=first.episodes, ale_version=first.ale_version) for each in others)
    return first if all(each == first for each in alike) else None


def _training(group: Group, protocol: Protocol) -> Protocol:
    """Return the protocol of the training games, with their ε and frame cap."""
    values = group.runs[0].values
    return replace(
        protocol,
        epsilon=float(values["exploration.epsilon_end"]),
        max_episode_frames=int(values["env.max_episode_frames"]),
    )
