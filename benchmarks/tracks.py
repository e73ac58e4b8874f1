"""Our own agents on Pong compared with one another: emulator frames/s after the prefill, taking turns.

All in fp32 on one environment of the CPU unless their name says otherwise, batch 32 every 4 agent steps, with
the same replay size, target period, ε and torch threads. Track B adds the second stream of a dueling network,
a forward pass of the online network for Double, the priorities, and sticky actions, and has another
optimizer.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from training_speed import Contender, Match, run

RUNS = Path(__file__).parents[1] / "runs"
GAME = "pong"


def ours(spec: str, *overrides: str, envs: int = 1) -> Contender:
    """Return the agent of a file in `runs/`."""
    options = {"game": GAME, "spec": RUNS / spec, "envs": envs, "set": overrides}
    return Contender(python=Path(sys.executable), script="train_ours.py", options=options)


TRACK_A, TRACK_A_BF16, TRACK_B = "ours A", "ours A, 8 environments, bf16", "ours B"
C51, RAINBOW, RAINBOW_BF16 = "ours C51", "ours Rainbow", "ours Rainbow, bf16"
OURS = {
    TRACK_A: ours("pong_trackA.toml"),
    TRACK_A_BF16: ours("pong_trackA.toml", "learner.precision=bf16", envs=8),
    TRACK_B: ours("pong_trackB.toml"),
    C51: ours("c51.toml"),
    RAINBOW: ours("rainbow.toml"),
    RAINBOW_BF16: ours("rainbow.toml", "learner.precision=bf16"),
}


def add_options(_parser: argparse.ArgumentParser) -> None:
    """Add none: nothing has to be installed."""


def match(_options: argparse.Namespace) -> Match:
    """Return Track A in both forms, and Track B."""
    names = (TRACK_A, TRACK_A_BF16, TRACK_B)
    return Match(
        contenders={name: OURS[name] for name in names},
        ratios=[(TRACK_B, TRACK_A), (TRACK_A_BF16, TRACK_A)],
    )


if __name__ == "__main__":
    run(__doc__, [sys.modules[__name__]])
