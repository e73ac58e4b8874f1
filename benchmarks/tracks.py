"""Our own agents on Pong compared with one another: emulator frames/s after the prefill, taking turns.

All in fp32 on one environment of the CPU unless their name says otherwise, batch 32 every 4 agent steps, with
the same replay size, target period, ε and torch threads. Track B adds the second stream of a dueling network,
a forward pass of the online network for Double, the priorities, and sticky actions, and has another
optimizer. `pong_quick` keeps all that its spec says, at its last ε.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from atari_dqn.spec.loader import load_spec
from contender import Contender
from training_speed import Match, run

RUNS = Path(__file__).parents[1] / "runs"
GAME = "pong"


def ours(spec: str, *overrides: str, envs: int = 1, **more: object) -> Contender:
    """Return the agent of a file in `runs/`; `more` replaces settings that are the same for all others."""
    options = {"game": GAME, "spec": RUNS / spec, "envs": envs, "set": overrides, **more}
    return Contender(python=Path(sys.executable), script="train_ours.py", options=options)


def as_shipped(spec: str) -> Contender:
    """Return an agent with its own environments, replay, target period and last ε."""
    own = load_spec(RUNS / spec).spec
    return ours(
        spec,
        envs=own.env.num_envs,
        epsilon=own.exploration.epsilon_end,
        capacity_steps=own.replay.capacity_steps,
        prefill_steps=own.replay.prefill_steps,
        target_period_updates=own.learner.target_period_updates,
    )


TRACK_A, TRACK_A_8_ENVS = "ours A", "ours A, 8 environments"
TRACK_A_BF16, TRACK_B = "ours A, 8 environments, bf16", "ours B"
C51, RAINBOW, RAINBOW_BF16 = "ours C51", "ours Rainbow", "ours Rainbow, bf16"
QUICK = "pong_quick"
OURS = {
    TRACK_A: ours("pong_trackA.toml"),
    TRACK_A_8_ENVS: ours("pong_trackA.toml", envs=8),
    TRACK_A_BF16: ours("pong_trackA.toml", "learner.precision=bf16", envs=8),
    TRACK_B: ours("pong_trackB.toml"),
    C51: ours("c51.toml"),
    RAINBOW: ours("rainbow.toml"),
    RAINBOW_BF16: ours("rainbow.toml", "learner.precision=bf16"),
    QUICK: as_shipped("pong_quick.toml"),
}


def add_options(_parser: argparse.ArgumentParser) -> None:
    """Add none: nothing has to be installed."""


def own_match(first: str, *others: str) -> Match:
    """Return a match of agents of ours, the first compared with each of the others."""
    return Match(
        contenders={name: OURS[name] for name in (first, *others)},
        ratios=[(first, other) for other in others],
    )


ROWS = {
    "track_b": lambda _options: own_match(TRACK_B, TRACK_A),
    "bf16": lambda _options: own_match(TRACK_A_BF16, TRACK_A),
    "pong_quick": lambda _options: own_match(QUICK),
}

if __name__ == "__main__":
    run(__doc__, [sys.modules[__name__]])
