"""Values that change over a run, as functions of a count."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class LinearSchedule:
    """From `start` to `end` in a straight line over `decay_frames`, then `end`."""

    start: float
    end: float
    decay_frames: int

    def at(self, frames: int) -> float:
        """Return the value after `frames` emulator frames."""
        if frames >= self.decay_frames:
            return self.end
        return self.start + (self.end - self.start) * (frames / self.decay_frames)
