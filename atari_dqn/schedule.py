"""Values that change during a run, as functions of the emulator frames played."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

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
