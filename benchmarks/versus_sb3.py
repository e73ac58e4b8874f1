"""Track A on Pong and Stable-Baselines3's DQN: emulator frames/s after the prefill, taking turns.

Both: one game, the CPU, the Nature network, batch 32 every 4 agent steps, the target network copied at the
same period, ε fixed, as many torch threads. Each has its own optimizer, replay, preprocessing and episode
ends.
"""

from __future__ import annotations

import argparse
import sys

from tracks import OURS, TRACK_A, TRACK_A_BF16
from training_speed import Contender, Match, prepare, run

GAME = "PongNoFrameskip-v4"
PACKAGES = ("stable-baselines3==2.9.*", "ale-py==0.12.*", "opencv-python-headless", "gymnasium")
DQN, DQN_8_ENVS = "SB3 DQN", "SB3 DQN, 8 environments"


def add_options(_parser: argparse.ArgumentParser) -> None:
    """Add none."""


def match(options: argparse.Namespace) -> Match:
    """Return both forms of Track A against SB3 as it is used, and against SB3 on as many environments."""
    python = prepare(options.venv / "sb3", PACKAGES)
    theirs = {
        name: Contender(python=python, script="train_sb3.py", options={"game": GAME, "envs": envs})
        for name, envs in ((DQN, 1), (DQN_8_ENVS, 8))
    }
    return Match(
        contenders={TRACK_A: OURS[TRACK_A], TRACK_A_BF16: OURS[TRACK_A_BF16], **theirs},
        ratios=[(TRACK_A, DQN), (TRACK_A_BF16, DQN), (TRACK_A_BF16, DQN_8_ENVS)],
    )


if __name__ == "__main__":
    run(__doc__, [sys.modules[__name__]])
