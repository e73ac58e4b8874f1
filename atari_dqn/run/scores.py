"""The episodes of an evaluation, their score, and the protocol of the evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from atari_dqn.run.provenance import versions
from atari_dqn.spec.protocol import CheckpointChoice, Protocol, evaluation_protocol
from atari_dqn.spec.schema import Spec
from atari_dqn.types import StateDict


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationEpisode:
    """The result of one complete game."""

    episode_return: float
    length_frames: int
    end_reason: str
    """`game_over` or `frame_cap`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationScore:
    """The score of an evaluation: the results of its episodes and their statistics."""

    returns: tuple[float, ...]
    lengths_frames: tuple[int, ...]
    end_reasons: tuple[str, ...]

    @classmethod
    def of(cls, episodes: Sequence[EvaluationEpisode]) -> EvaluationScore:
        """Build the score from the episodes of an evaluation, in order."""
        return cls(
            returns=tuple(episode.episode_return for episode in episodes),
            lengths_frames=tuple(episode.length_frames for episode in episodes),
            end_reasons=tuple(episode.end_reason for episode in episodes),
        )

    @classmethod
    def of_state(cls, state: StateDict) -> EvaluationScore:
        """Build the score from a dict made by `dataclasses.asdict` and read back from JSON."""
        return cls(**{name: tuple(values) for name, values in state.items()})

    @property
    def episodes(self) -> int:
        """Number of episodes."""
        return len(self.returns)

    @property
    def mean_return(self) -> float:
        """Mean of the unclipped returns."""
        return float(np.mean(self.returns))

    @property
    def std_return(self) -> float:
        """Standard deviation over episodes, with n − 1; NaN for a single one."""
        return float(np.std(self.returns, ddof=1)) if self.episodes > 1 else float("nan")

    @property
    def frame_caps(self) -> int:
        """Number of episodes that the frame cap truncated."""
        return self.end_reasons.count("frame_cap")

    def __str__(self) -> str:
        spread = f" ± {self.std_return:.2f}" if self.episodes > 1 else ""
        cut = f", {self.frame_caps} cut by the frame cap" if self.frame_caps else ""
        return f"{self.mean_return:.2f}{spread} over {self.episodes} episode{'s' * (self.episodes > 1)}{cut}"

    def row(self) -> dict[str, float | int | str]:
        """Return the columns of eval_log that depend on the episodes."""
        return {
            "episodes": self.episodes,
            "mean_return": self.mean_return,
            "std_return": self.std_return,
            "median_return": float(np.median(self.returns)),
            "min_return": min(self.returns),
            "max_return": max(self.returns),
            "mean_length_frames": float(np.mean(self.lengths_frames)),
            "min_length_frames": min(self.lengths_frames),
            "max_length_frames": max(self.lengths_frames),
            "game_overs": self.end_reasons.count("game_over"),
            "frame_caps": self.frame_caps,
        }


def score_protocol(spec: Spec, *, episodes: int, checkpoint: CheckpointChoice, rom_md5: str) -> Protocol:
    """Return the protocol of an evaluation, including the version of ale-py on this machine."""
    ale_version = (versions()["ale-py"] or "") if rom_md5 else ""
    return evaluation_protocol(
        spec, episodes=episodes, checkpoint=checkpoint, ale_version=ale_version, rom_md5=rom_md5
    )
