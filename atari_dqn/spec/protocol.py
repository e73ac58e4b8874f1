"""The protocol of a score: every setting that must be equal for two scores to be comparable."""

from __future__ import annotations

import hashlib
import math
from dataclasses import asdict, dataclass
from typing import Literal

from atari_dqn.spec.digest import canonical_json
from atari_dqn.spec.schema import Spec

CheckpointChoice = Literal["current", "last", "best"]
"""The weights evaluated: those during training, at its end, or of the checkpoint with the best evaluation."""

_SHORT_DIGITS = 8


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """How a score was measured, and the settings of training that decide whether scores are comparable."""

    sticky_probability: float
    """Probability, at each emulator frame, that the previous frame's action is repeated."""
    flicker_probability: float = 0.0
    """Probability, at each agent step, that the frame is black; earlier versions have no such field."""
    noop_max_frames: int
    """An episode begins with 1 to this many no-op frames; 0 for none."""
    max_episode_frames: int
    """Emulator frames after which an evaluation episode is truncated."""
    epsilon: float
    """Probability of a random action in evaluation."""
    full_action_set: bool
    """Whether the agent has all 18 actions, or only those that the game uses."""
    frame_skip: int
    """Emulator frames per agent step, during which the action is repeated."""
    resize: str
    """Interpolation that scales the screen to a square."""
    screen_size_pixels: int
    """Height and width of an observation."""
    training_terminal_on_life_loss: bool
    """Whether a lost life was terminal in training. In evaluation it never is."""
    training_max_abs_reward: float
    """Bound that rewards were clipped to in training. Scores are not clipped."""
    episodes: int
    """Number of episodes in the mean score."""
    checkpoint: CheckpointChoice
    """The weights evaluated."""
    ale_version: str
    """Version of ale-py; empty for a game that is not of ALE."""
    rom_md5: str
    """MD5 of the ROM; empty for a game without one."""

    def short(self) -> str:
        """Format the protocol as one line for display."""
        life_loss = "terminal" if self.training_terminal_on_life_loss else "ignored"
        bound = self.training_max_abs_reward
        rewards = "unclipped rewards" if math.isinf(bound) else f"rewards within ±{bound:g}"
        parts = [
            f"ε {self.epsilon:g}",
            f"sticky {self.sticky_probability:g}",
            *([f"flicker {self.flicker_probability:g}"] if self.flicker_probability else []),
            f"no-op 1–{self.noop_max_frames}" if self.noop_max_frames else "no no-ops",
            f"cap {self.max_episode_frames:,} frames",
            f"{'full' if self.full_action_set else 'minimal'} actions",
            f"skip {self.frame_skip}",
            f"{self.screen_size_pixels}×{self.screen_size_pixels} {self.resize}",
            f"{self.episodes} episode{'s' * (self.episodes > 1)}",
            f"{self.checkpoint} weights",
            f"trained with life loss {life_loss} and {rewards}",
            f"ale-py {self.ale_version or '–'}",
            f"ROM {self.rom_md5[:_SHORT_DIGITS] or '–'}",
        ]
        return " · ".join(parts)

    def digest(self) -> str:
        """Compute the fingerprint: the first 12 hex digits of the SHA-256 of the canonical JSON.

        Without flicker it is that of earlier versions, whose protocols do not have the field.
        """
        fields = {
            name: value for name, value in asdict(self).items() if name != "flicker_probability" or value
        }
        return hashlib.sha256(canonical_json(fields).encode()).hexdigest()[:12]


def evaluation_protocol(
    spec: Spec, *, episodes: int, checkpoint: CheckpointChoice, ale_version: str, rom_md5: str
) -> Protocol:
    """Return the protocol of the evaluations that a spec defines."""
    return Protocol(
        sticky_probability=spec.env.sticky_probability,
        flicker_probability=spec.env.flicker_probability,
        noop_max_frames=spec.env.noop_max_frames,
        max_episode_frames=spec.evaluation.max_episode_frames,
        epsilon=spec.evaluation.epsilon,
        full_action_set=spec.env.full_action_set,
        frame_skip=spec.env.frame_skip,
        resize=spec.env.resize,
        screen_size_pixels=spec.env.screen_size_pixels,
        training_terminal_on_life_loss=spec.env.terminal_on_life_loss,
        training_max_abs_reward=spec.learner.max_abs_reward,
        episodes=episodes,
        checkpoint=checkpoint,
        ale_version=ale_version,
        rom_md5=rom_md5,
    )
