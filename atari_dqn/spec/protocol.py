"""The protocol fingerprint of a score: everything that two scores must share to be compared."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass
from typing import Literal

from atari_dqn.spec.digest import canonical_json
from atari_dqn.spec.schema import Spec

CheckpointChoice = Literal["current", "last", "best"]
"""Weights at that moment of training, at its end, or of the checkpoint that had scored best."""

_SHORT_DIGITS = 8


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """How a score was measured, and what of the training decides whether scores compare."""

    sticky_probability: float
    """Chance, on each emulator frame, that the last frame's action is repeated."""
    noop_max_frames: int
    """An episode begins with 1 to this many no-op frames; 0 for none."""
    max_episode_frames: int
    """The cap: an evaluation episode is truncated here."""
    epsilon: float
    """Chance of a random action in evaluation."""
    full_action_set: bool
    """All 18 actions, or only those the game uses."""
    frame_skip: int
    """Emulator frames an action is held for."""
    resize: str
    """How the screen becomes square."""
    screen_size_pixels: int
    """Height and width of what the agent sees."""
    training_terminal_on_life_loss: bool
    """In training a lost life ended the return; in evaluation it never does."""
    training_max_abs_reward: float
    """In training rewards were clipped to ± this; scores never are."""
    episodes: int
    """Episodes the score is the mean of."""
    checkpoint: CheckpointChoice
    """Which weights played."""
    ale_version: str
    """Version of ale-py; empty for a game that is not ALE's."""
    rom_md5: str
    """MD5 of the ROM; empty for a game that has none."""

    def short(self) -> str:
        """Return the protocol on one line, for people."""
        life_loss = "terminal" if self.training_terminal_on_life_loss else "ignored"
        parts = [
            f"ε {self.epsilon:g}",
            f"sticky {self.sticky_probability:g}",
            f"no-op 1–{self.noop_max_frames}" if self.noop_max_frames else "no no-ops",
            f"cap {self.max_episode_frames:,} frames",
            f"{'full' if self.full_action_set else 'minimal'} actions",
            f"skip {self.frame_skip}",
            f"{self.screen_size_pixels}×{self.screen_size_pixels} {self.resize}",
            f"{self.episodes} episode{'s' * (self.episodes > 1)}",
            f"{self.checkpoint} weights",
            f"trained with life loss {life_loss} and rewards within ±{self.training_max_abs_reward:g}",
            f"ale-py {self.ale_version or '–'}",
            f"ROM {self.rom_md5[:_SHORT_DIGITS] or '–'}",
        ]
        return " · ".join(parts)

    def digest(self) -> str:
        """Return the fingerprint: the first 12 hex digits of the SHA-256 of the protocol's canonical JSON."""
        return hashlib.sha256(canonical_json(asdict(self)).encode()).hexdigest()[:12]


def evaluation_protocol(
    spec: Spec, *, episodes: int, checkpoint: CheckpointChoice, ale_version: str, rom_md5: str
) -> Protocol:
    """Return the protocol of a run's own evaluations."""
    return Protocol(
        sticky_probability=spec.env.sticky_probability,
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
