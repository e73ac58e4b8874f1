"""Collect the rows of a fragment while an actor plays it.

A row is one step of the L environments of an actor. A fragment has T steps; the first one of an incarnation
begins with a row more, that of the reset. R numbers of a recurrent state.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Float32, Float64, Int64

from atari_dqn.actors.acting import Selected
from atari_dqn.actors.message import Fragment
from atari_dqn.types import StepBatch

_FLAGS = ("terminated", "truncated", "life_lost", "first")


class FragmentRows:
    """The rows of one fragment, in lists."""

    def __init__(self) -> None:
        self._rows: list[dict[str, np.ndarray]] = []
        self._played: list[dict[str, np.ndarray]] = []
        self._states: list[np.ndarray] = []
        self._state_rows: list[int] = []

    def add_reset(self, step: StepBatch, *, version: int) -> None:
        """Add the first frames of an incarnation, which no action precedes."""
        assert not self._rows
        self._append(step, np.zeros(len(step.frame), dtype=np.int16), version)

    def add(
        self,
        selected: Selected,
        step: StepBatch,
        *,
        number: Int64[np.ndarray, "L"],
        reward: Float[np.ndarray, "L"],
        discount: Float64[np.ndarray, "L"],
        state: Float32[np.ndarray, "L R"] | None,
    ) -> None:
        """Add a step: the actions, their results, and what the first priorities need.

        `number`: of the step in its episode. `reward`: clipped as the replay clips it. `state`: the recurrent
        states before the frames on which the actions were selected; None where no sequence begins.
        """
        if state is not None:
            self._state_rows.append(len(self._rows))
            self._states.append(state)
        self._append(step, selected.action.astype(np.int16), selected.version)
        self._played.append(
            {
                "q_selected": selected.q_selected,
                "q_max": selected.q_max,
                "reward": reward.astype(np.float32),
                "discount": discount.astype(np.float32),
                "is_step": ~step.first,
                "number": number,
            }
        )

    def played(self) -> dict[str, np.ndarray]:
        """Return the columns of `first_priorities.Windows`, each [T, L], without the reset."""
        return {name: np.stack([row[name] for row in self._played]) for name in self._played[0]}

    def fragment(
        self,
        *,
        actor: int,
        incarnation: int,
        sequence: int,
        epsilon: Float64[np.ndarray, "L"],
        priority: Float32[np.ndarray, "T L"] | None,
    ) -> Fragment:
        """Return the fragment of these rows."""
        envs = len(epsilon)
        # a row without a sample, such as that of the reset, keeps NaN
        priorities = np.full((len(self._rows), envs), np.nan, dtype=np.float32)
        if priority is not None:
            priorities[len(self._rows) - len(priority) :] = priority
        columns = {name: np.stack([row[name] for row in self._rows]) for name in self._rows[0]}
        return Fragment(
            actor=actor,
            incarnation=incarnation,
            sequence=sequence,
            **columns,
            state=np.stack(self._states) if self._states else np.zeros((0, envs, 0), dtype=np.float32),
            state_rows=np.array(self._state_rows, dtype=np.int64),
            priority=priorities,
            epsilon=np.asarray(epsilon, dtype=np.float64),
        )

    def _append(self, step: StepBatch, action: np.ndarray, version: int) -> None:
        """Append a row, copied because the next step overwrites the arrays of `step`."""
        self._rows.append(
            {
                "version": np.array(version, dtype=np.int64),
                "frame": step.frame.copy(),
                "action": action,
                "reward": step.reward.astype(np.float32),
                **{name: getattr(step, name).copy() for name in _FLAGS},
            }
        )
