"""Track A on Pong and Stable-Baselines3's DQN: emulator frames/s after the prefill, taking turns.

Both: one game, the CPU, the Nature network, batch 32 every 4 agent steps, the target network copied at the
same period, ε fixed, as many torch threads. Each has its own optimizer, replay, preprocessing and episode
ends.
"""

from __future__ import annotations

import argparse
import sys

from contender import Contender, prepare
from tracks import OURS, TRACK_A, TRACK_A_8_ENVS, TRACK_A_BF16
from training_speed import Match, run

GAME = "PongNoFrameskip-v4"
PACKAGES = ("stable-baselines3==2.9.*", "ale-py==0.12.*", "opencv-python-headless", "gymnasium")
DQN, DQN_8_ENVS = "SB3 DQN", "SB3 DQN, 8 environments"
ENVS = {DQN: 1, DQN_8_ENVS: 8}


def add_options(_parser: argparse.ArgumentParser) -> None:
    """Add none."""


def against(first: str, *names: str, options: argparse.Namespace) -> Match:
    """Return a match of an agent of ours and SB3 on as many environments as the names say."""
    python = prepare(options.venv / "sb3", PACKAGES)
    theirs = {
        name: Contender(python=python, script="train_sb3.py", options={"game": GAME, "envs": ENVS[name]})
        for name in names
    }
    return Match(contenders={first: OURS[first], **theirs}, ratios=[(first, name) for name in names])


ROWS = {
    "track_a": lambda options: against(TRACK_A, DQN, options=options),
    "eight": lambda options: against(TRACK_A_8_ENVS, DQN_8_ENVS, options=options),
    "bf16": lambda options: against(TRACK_A_BF16, DQN, DQN_8_ENVS, options=options),
}
"""SB3 as it is used, and on as many environments as ours."""

if __name__ == "__main__":
    run(__doc__, [sys.modules[__name__]])
