"""Store fragments in the replay: each actor's in its own group of columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from atari_dqn.actors.message import Fragment
from atari_dqn.replay.groups import GroupedReplay
from atari_dqn.types import StepBatch


def steps_of(fragment: Fragment) -> StepBatch:
    """Return the rows of a fragment as consecutive steps of its environments."""
    return StepBatch(
        frame=fragment.frame,
        reward=fragment.reward.astype(np.float64),
        terminated=fragment.terminated,
        truncated=fragment.truncated,
        life_lost=fragment.life_lost,
        first=fragment.first,
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
    group, steps, rows = replay.groups[fragment.actor], steps_of(fragment), slice(None)
    if group.rows_stored < 0:
        group.begin(steps[0])
        rows = slice(1, None)
    group.extend(
        fragment.action[rows].astype(np.int64),
        steps[rows].discount(terminal_on_life_loss=terminal_on_life_loss),
        steps[rows],
        _states(fragment)[rows],
        fragment.priority[rows] if has_priorities else None,
    )


def _states(fragment: Fragment) -> list[Tensor | None]:
    """Return the recurrent states before each row; None where a fragment has none."""
    states: list[Tensor | None] = [None] * len(fragment.version)
    for row, state in zip(fragment.state_rows.tolist(), fragment.state, strict=True):
        states[row] = torch.from_numpy(state.copy())
    return states
