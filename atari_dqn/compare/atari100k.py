"""Published columns of Atari 100k beside a group's score of that budget and protocol."""

from __future__ import annotations

from dataclasses import dataclass, replace

from atari_dqn.compare.group import Group
from atari_dqn.compare.reference.atari100k import FRAMES, Column, columns_of
from atari_dqn.compare.reference.match import Subject, differences
from atari_dqn.compare.reference.tables import Figure, HumanRandom, studies
from atari_dqn.compare.references import protocol_of
from atari_dqn.compare.score import GroupScore
from atari_dqn.compare.statistics import Estimate


@dataclass(frozen=True, kw_only=True)
class Published:
    """A column's figure, and whether it lies in the group's interval."""

    column: Column
    figure: Figure
    normalised: float | None
    """By people and chance; None for a game that their table does not have."""
    inside: bool | None
    """None where the group has no interval, and for a recalled figure, which nothing is judged by."""


def published(group: Group, last: GroupScore, human: HumanRandom | None) -> tuple[Published, ...]:
    """Return the columns; none unless the scores are of 400,000 frames and may stand beside them."""
    protocol = protocol_of(group, last)
    if protocol is None or last.env_frames != FRAMES or not last.comparable:
        return ()
    subject = Subject(game=group.game, agent=group.method.agent, protocol=protocol)
    return tuple(
        Published(
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
