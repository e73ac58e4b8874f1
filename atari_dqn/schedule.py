"""Values that change during a run, as functions of the emulator frames played."""

from __future__ import annotations

from dataclasses import dataclass


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
