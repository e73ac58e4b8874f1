"""Store fragments in the replay: each actor's in its own group of columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from atari_dqn.actors.message import Fragment
from atari_dqn.replay.groups import GroupedReplay
from atari_dqn.types import StepBatch


def steps_of(fragment: Fragment) -> Iterator[StepBatch]:
    """Yield the rows of a fragment as steps of its environments."""
    for row in range(len(fragment.version)):
        yield StepBatch(
            frame=fragment.frame[row],
            reward=fragment.reward[row].astype(np.float64),
            terminated=fragment.terminated[row],
            truncated=fragment.truncated[row],
            life_lost=fragment.life_lost[row],
            first=fragment.first[row],
        )


def steps_in(fragment: Fragment) -> int:
    """Return the number of steps in a fragment; resets are none."""
    return int(np.count_nonzero(~fragment.first))


def begins_incarnation(fragment: Fragment) -> bool:
    """Return whether the first row of a fragment is the reset of all its environments."""
    return fragment.sequence == 0


def insert(
    fragment: Fragment, replay: GroupedReplay[Any], *, terminal_on_life_loss: bool, has_priorities: bool
) -> None:
    """Store a fragment. A later incarnation continues its group's rows with a reset of all environments."""
    group = replay.groups[fragment.actor]
    states = _states(fragment)
    for row, step in enumerate(steps_of(fragment)):
        if group.rows_stored < 0:
            group.begin(step)
            continue
        group.append(
            fragment.action[row].astype(np.int64),
            step.discount(terminal_on_life_loss=terminal_on_life_loss),
            step,
            states.get(row),
            fragment.priority[row].copy() if has_priorities else None,
        )


def _states(fragment: Fragment) -> dict[int, Tensor]:
    """Return the recurrent states that a fragment has, by row."""
    rows = fragment.state_rows.tolist()
    return {row: torch.from_numpy(state.copy()) for row, state in zip(rows, fragment.state, strict=True)}
