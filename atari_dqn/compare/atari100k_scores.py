"""Compare a group's scores after 400,000 frames with the published Atari 100k columns."""

from __future__ import annotations

from dataclasses import dataclass, replace

from atari_dqn.compare.group import Group
from atari_dqn.compare.group_score import GroupScore
from atari_dqn.compare.reference.atari100k import FRAMES, Column, columns_of
from atari_dqn.compare.reference.match import Subject, differences
from atari_dqn.compare.reference.studies import Figure, HumanRandom, studies
from atari_dqn.compare.references import protocol_of
from atari_dqn.compare.statistics import Estimate


@dataclass(frozen=True, kw_only=True)
class Atari100kScore:
    """A published score of Atari 100k, and whether it lies in the confidence interval of the group."""

    column: Column
    figure: Figure
    normalised: float | None
    """Human-normalised; None for a game that the table of human scores does not contain."""
    inside: bool | None
    """None if the group has no interval, or if the figure is recalled and so proves nothing."""


def atari100k_scores(group: Group, last: GroupScore, human: HumanRandom | None) -> tuple[Atari100kScore, ...]:
    """Return the scores of all published agents under a group's protocol; none but at 400,000 frames."""
    protocol = protocol_of(group, last)
    if protocol is None or not last.comparable:
        return ()
    subject = Subject(
        game=group.game,
        agent=group.method.agent,
        protocol=protocol,
        late_frames=group.runs[0].iteration_frames,
    )
    if not subject.counts_at(FRAMES, last.env_frames):
        return ()
    return tuple(
        Atari100kScore(
            column=column,
            figure=figure,
            normalised=None if human is None else human.normalised(figure.mean),
            inside=None if column.sourced == "recalled" else _inside(last.estimates["mean"], figure.mean),
        )
        for column, figure in columns_of(group.game)
        if not list(differences(replace(subject, agent=column.agent), studies()[column.study], column.agent))
    )


def _inside(ours: Estimate, theirs: float) -> bool | None:
    return None if ours.interval is None else ours.interval.low <= theirs <= ours.interval.high
