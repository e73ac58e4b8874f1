"""Compute the progress of a run, as it is displayed, from its files."""

from __future__ import annotations

from dataclasses import dataclass

from atari_dqn.run.tailing.status import IMPORTED, RunStatus


@dataclass(frozen=True, kw_only=True)
class ShownProgress:
    """The frames that a run has trained, and its budget."""

    frames: int
    budget: int
    """The current budget. An import, which has no event log, is known by its spec alone."""
    is_imported: bool

    @property
    def is_beyond_spec(self) -> bool:
        """Whether an import has more frames than its spec says, as after a resume that raised the budget."""
        return self.is_imported and self.frames > self.budget

    @property
    def shown_budget(self) -> int:
        """The budget as displayed; of an import beyond its spec its frames."""
        return self.frames if self.is_beyond_spec else self.budget

    @property
    def share(self) -> float:
        """Progress as a share of the budget."""
        return min(1.0, self.frames / max(1, self.shown_budget))

    def text(self, *, unit: str = "") -> str:
        """Format frames and budget: `2,000 of 4,000 (50.0%)`; `unit` follows the numbers, with its space."""
        if self.is_beyond_spec:
            return f"{self.frames:,}{unit} ({self.budget:,} by its spec)"
        return f"{self.frames:,} of {self.budget:,}{unit} ({self.share:.1%})"


def shown_progress(status: RunStatus) -> ShownProgress:
    """Compute the progress of a run; its last evaluation may be later than the last row of other tables."""
    evaluated = int(status.latest.get("eval_log", {}).get("env_frames", 0))
    return ShownProgress(
        frames=max(status.env_frames, evaluated),
        budget=status.total_frames,
        is_imported=status.state == IMPORTED,
    )
