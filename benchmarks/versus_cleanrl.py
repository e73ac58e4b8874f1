"""Track A, C51 and Rainbow on Pong and CleanRL's scripts: emulator frames/s after the prefill, in turns.

Both: one game, one environment unless ours says otherwise, the CPU, batch 32 every 4 agent steps, the target
network copied at the same period, ε fixed (Rainbow has none), as many torch threads. Each has its own
optimizer, replay, preprocessing and episode ends. CleanRL's scripts run unchanged.

The package of CleanRL has a `dqn_atari.py` for Gymnasium, but a `c51_atari.py` for the older `gym` and no
`rainbow_atari.py`. Give a checkout of its repository with --cleanrl to have these two measured as well; what
is not there is left out, and the notes say so.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from contender import Contender, prepare
from tracks import C51, OURS, RAINBOW, RAINBOW_BF16, TRACK_A, TRACK_A_BF16
from training_speed import Match, run

GAME = "PongNoFrameskip-v4"
PACKAGES = (
    "gymnasium==0.29.1",  # the scripts use wrappers that Gymnasium 1.0 renamed
    "stable-baselines3==2.3.*",
    "ale-py==0.12.*",
    "numpy<2",  # as that Gymnasium
    "opencv-python-headless<4.12",
    "tensorboard",
    "tyro",
)
PACKAGE = "cleanrl==1.2.0"  # asks for Python below 3.11, which dqn_atari.py does not need
DQN, THEIR_C51, THEIR_RAINBOW = "CleanRL dqn_atari", "CleanRL c51_atari", "CleanRL rainbow_atari"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add where the scripts are that the package lacks."""
    parser.add_argument(
        "--cleanrl", type=Path, metavar="CHECKOUT", help="a clone of CleanRL, or what is needed of it"
    )


def against(first: str, name: str, *, options: argparse.Namespace) -> Match:
    """Return a match of an agent of ours and a script of the package."""
    return Match(
        contenders={first: OURS[first], name: theirs(name, options)},
        ratios=[(first, name)],
    )


def against_checkout(first: str, name: str, *, options: argparse.Namespace) -> Match:
    """Return a match of an agent of ours and a script that the package lacks.

    Without the script nothing is measured and a note says so, unless the row was asked for by its name.
    """
    file = f"cleanrl/{script(name)}.py"
    if options.cleanrl and (options.cleanrl / file).exists():
        rival = theirs(name, options, checkout=options.cleanrl)
        return Match(contenders={first: OURS[first], name: rival}, ratios=[(first, name)])
    missing = f"no {file} in a checkout given with --cleanrl"
    if options.rows:
        raise SystemExit(missing)
    return Match(contenders={}, ratios=[], notes=[f"{name} was not measured: {missing}"])


def theirs(name: str, options: argparse.Namespace, **more: object) -> Contender:
    return Contender(
        python=prepare(options.venv / "cleanrl", PACKAGES, without_dependencies=[PACKAGE]),
        script="train_cleanrl.py",
        options={"game": GAME, "algorithm": script(name), **more},
    )


def script(name: str) -> str:
    return name.removeprefix("CleanRL ")


ROWS = {
    "track_a": lambda options: against(TRACK_A, DQN, options=options),
    "bf16": lambda options: against(TRACK_A_BF16, DQN, options=options),
    "c51": lambda options: against_checkout(C51, THEIR_C51, options=options),
    "rainbow": lambda options: against_checkout(RAINBOW, THEIR_RAINBOW, options=options),
    "rainbow_bf16": lambda options: against_checkout(RAINBOW_BF16, THEIR_RAINBOW, options=options),
}

if __name__ == "__main__":
    run(__doc__, [sys.modules[__name__]])
