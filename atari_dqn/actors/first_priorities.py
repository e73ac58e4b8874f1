r"""The first priorities of samples, from the q-values with which an actor selected its actions.

Horgan et al. (2018), section 3; Kapturowski et al. (2019), section 2.3. L environments, m steps in a window.
A priority becomes known with the row that completes its window, which is the row with which the replay adds
the sample:

    steps               0   1   2   3   4   5   6
    windows, m = 3     [0   1   2]                     known with row 2
                           [1   2   3]                 known with row 3, from q of the frame after it
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Protocol

import numpy as np
import torch
from jaxtyping import Bool, Float, Float32, Int64, Shaped
from torch import Tensor

from atari_dqn.agent.sequence_loss import Scale, mixed_priority, unchanged
from atari_dqn.replay.sequences import n_step_windows, sequence_begins
from atari_dqn.types import StateDict


@dataclass(frozen=True, slots=True, kw_only=True)
class Windows:
    """Windows of m consecutive steps of one environment, with the q-values of m + 1 frames. W windows."""

    q_selected: Float[Tensor, "W m"]
    q_max: Float[Tensor, "W m+1"]
    reward: Float[Tensor, "W m"]
    discount: Float[Tensor, "W m"]
    is_step: Bool[Tensor, "W m"]
    number: Int64[Tensor, "W m"]
    """The number of each step in its episode."""

    @property
    def mask(self) -> Bool[Tensor, "W m"]:
        """Whether each step belongs to the episode of the first one."""
        return self.is_step.cumprod(dim=1).bool()

    def td_errors(self, *, n_step: int, gamma: float, h: Scale, h_inverse: Scale) -> Float[Tensor, "W m"]:
        """Compute δ = h(Σ γⁱ r + γⁿ h⁻¹(max q)) − q of each step, with windows as the replay's."""
        found = n_step_windows(self.reward, self.discount, self.mask, n_step=n_step, gamma=gamma)
        v = h_inverse(self.q_max).gather(1, found["end_t"])
        return h(found["r_t"] + found["discount_t"] * v) - self.q_selected

    def select(self, chosen: Bool[Tensor, "W"]) -> Windows:
        """Return some of the windows."""
        return Windows(**{name: getattr(self, name)[chosen] for name in _COLUMNS})


_COLUMNS = tuple(field.name for field in fields(Windows))


def _windows_of(column: Shaped[np.ndarray, "R L"], length: int) -> Shaped[Tensor, "W {length}"]:
    """Cut every window of `length` consecutive rows out of the columns of L environments."""
    return torch.from_numpy(column).unfold(0, length, 1).flatten(0, 1)


class SampleKind(Protocol):
    """Which windows are samples of the replay, and their absolute errors."""

    @property
    def steps(self) -> int:
        """Length m of a window."""
        ...

    def begins(self, windows: Windows) -> Bool[Tensor, "W"]:
        """Return at which windows a sample begins."""
        ...

    def errors(self, windows: Windows) -> Float[Tensor, "W"]:
        """Compute the absolute error of each sample."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TransitionErrors:
    """Transitions: each step is one, with its n-step |δ|."""

    steps: int
    gamma: float

    def begins(self, windows: Windows) -> Bool[Tensor, "W"]:
        """Return at which windows there is a step."""
        return windows.is_step[:, 0]

    def errors(self, windows: Windows) -> Float[Tensor, "W"]:
        """Compute |δ| of the first step."""
        found = windows.td_errors(n_step=self.steps, gamma=self.gamma, h=unchanged, h_inverse=unchanged)
        return found[:, 0].abs()


@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceErrors:
    """Sequences of `steps` steps, which begin each `period` steps of an episode."""

    steps: int
    period: int
    n_step: int
    gamma: float
    h: Scale
    h_inverse: Scale
    priority_mix: float
    """η."""

    def begins(self, windows: Windows) -> Bool[Tensor, "W"]:
        """Return at which windows a sequence begins, as `SequenceReplay`."""
        further = self.steps - self.period
        number = windows.number[:, 0]
        has_new = windows.is_step[:, further] & (windows.number[:, further] == number + further)
        begins = sequence_begins(number.numpy(), has_new.numpy(), period=self.period)
        return windows.is_step[:, 0] & torch.from_numpy(begins)

    def errors(self, windows: Windows) -> Float[Tensor, "W"]:
        """Compute η max |δ| + (1 − η) mean |δ| of each sequence."""
        errors = windows.td_errors(n_step=self.n_step, gamma=self.gamma, h=self.h, h_inverse=self.h_inverse)
        return mixed_priority(errors, windows.mask, self.priority_mix)


class FirstPriorities:
    """The open windows of an actor: the latest m − 1 rows, whose samples later rows complete."""

    def __init__(self, kind: SampleKind, *, envs: int) -> None:
        self._kind, self._envs = kind, envs
        shape = (kind.steps - 1, envs)
        self._open = {
            "q_selected": np.zeros(shape, dtype=np.float32),
            "q_max": np.zeros(shape, dtype=np.float32),
            "reward": np.zeros(shape, dtype=np.float32),
            "discount": np.zeros(shape, dtype=np.float32),
            "is_step": np.zeros(shape, dtype=np.bool_),
            "number": np.zeros(shape, dtype=np.int64),
        }

    def complete(
        self, rows: dict[str, np.ndarray], next_q_max: Float32[np.ndarray, "L"]
    ) -> Float32[np.ndarray, "T L"]:
        """Compute the absolute errors of the samples that T rows complete; NaN where there is none.

        `rows`: the columns of `Windows` for the T rows, each [T, L]. `next_q_max`: the highest q-value of the
        newest frame.
        """
        length = len(rows["reward"])
        all_rows = {name: np.concatenate([self._open[name], rows[name]]) for name in _COLUMNS}
        self._open = {name: column[length:] for name, column in all_rows.items()}
        all_rows["q_max"] = np.concatenate([all_rows["q_max"], next_q_max[None]])
        frames = {"q_max": self._kind.steps + 1}
        windows = Windows(
            **{
                name: _windows_of(column, frames.get(name, self._kind.steps))
                for name, column in all_rows.items()
            }
        )
        errors = torch.full((length * self._envs,), torch.nan)
        begins = self._kind.begins(windows)
        if begins.any():
            errors[begins] = self._kind.errors(windows.select(begins))
        found: np.ndarray = errors.view(length, self._envs).numpy()
        return found

    def state_dict(self) -> StateDict:
        """Return the open rows."""
        return {name: column.copy() for name, column in self._open.items()}

    def load_state_dict(self, state: StateDict) -> None:
        """Restore the open rows."""
        self._open = {name: np.asarray(state[name]) for name in self._open}
