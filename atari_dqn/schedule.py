"""Values that change during a run, as functions of the emulator frames played or of the updates."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from jaxtyping import Float64


@dataclass(frozen=True, kw_only=True)
class LinearSchedule:
    """Linear interpolation from `start` to `end` over `decay_frames` emulator frames, constant afterwards."""

    start: float
    end: float
    decay_frames: int

    def at(self, frames: int) -> float:
        """Compute the value after `frames` emulator frames."""
        if frames >= self.decay_frames:
            return self.end
        return self.start + (self.end - self.start) * (frames / self.decay_frames)


@dataclass(frozen=True)
class SwitchedOff:
    """A schedule that is 0 from `off_frames` emulator frames on."""

    schedule: LinearSchedule
    off_frames: int

    def at(self, frames: int) -> float:
        """Compute the value after `frames` emulator frames."""
        return 0.0 if frames >= self.off_frames else self.schedule.at(frames)


@dataclass(frozen=True, slots=True, kw_only=True)
class Horizon:
    """How far a target looks ahead: rewards of n steps, discounted by γ."""

    n_step: int
    gamma: float


class HorizonSchedule(Protocol):
    """n and γ as functions of the number of updates."""

    @property
    def updates_together(self) -> int:
        """Number of consecutive updates that may be taken with the same n and γ."""
        ...

    def at(self, updates: int, /) -> Horizon:
        """Compute n and γ of the update after `updates`."""
        ...


@dataclass(frozen=True, kw_only=True)
class ConstantHorizon:
    """The same n and γ in every update."""

    horizon: Horizon
    updates_together: int = sys.maxsize

    def at(self, updates: int) -> Horizon:  # noqa: ARG002 — as a schedule
        """Return n and γ."""
        return self.horizon


@dataclass(frozen=True, kw_only=True)
class AnnealedHorizon:
    """n and γ that go from `start` to `end` within `decay_updates`, again after each reset of the network.

    n changes exponentially, and so does 1 − γ; n is rounded. Schwarzer et al. (2023), section 4.
    """

    start: Horizon
    end: Horizon
    decay_updates: int
    last_reset: Callable[[int], int]
    """Computes the number of updates at the latest reset."""
    updates_together: int = 1

    def at(self, updates: int) -> Horizon:
        """Compute n and γ of the update after `updates`."""
        share = min(1.0, (updates - self.last_reset(updates)) / self.decay_updates)
        n_step = _exponential(self.start.n_step, self.end.n_step, share)
        return Horizon(
            n_step=round(n_step), gamma=1 - _exponential(1 - self.start.gamma, 1 - self.end.gamma, share)
        )


def _exponential(start: float, end: float, share: float) -> float:
    return end if share == 1.0 else start * math.exp(share * math.log(end / start))


@dataclass(frozen=True, kw_only=True)
class EpsilonSpectrum:
    """A constant ε for each environment: ε_i = base^(1 + exponent · i / (E − 1)). Horgan et al. (2018)."""

    base: float
    exponent: float
    num_envs: int

    @cached_property
    def values(self) -> Float64[np.ndarray, "E"]:
        """ε of each environment: the first explores most, the last least."""
        last = self.num_envs - 1
        return np.array([self.base ** (1 + self.exponent * slot / last) for slot in range(self.num_envs)])

    def at(self, frames: int) -> Float64[np.ndarray, "E"]:  # noqa: ARG002 — as a schedule
        """Return each environment's ε, which is the same at every frame."""
        return self.values

    def __str__(self) -> str:
        return f"ε {self.values[0]:.2g} to {self.values[-1]:.2g}"
