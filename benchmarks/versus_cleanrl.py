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

from tracks import C51, OURS, RAINBOW, RAINBOW_BF16, TRACK_A, TRACK_A_BF16
from training_speed import Contender, Match, prepare, run

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
IN_CHECKOUT = {THEIR_C51: (C51,), THEIR_RAINBOW: (RAINBOW, RAINBOW_BF16)}
"""Scripts that CleanRL's package does not have, and which of our agents are measured with each."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add where the scripts are that the package lacks."""
    parser.add_argument(
        "--cleanrl", type=Path, metavar="CHECKOUT", help="a clone of CleanRL, or what is needed of it"
    )


def match(options: argparse.Namespace) -> Match:
    """Return Track A against dqn_atari.py, and what the checkout has against ours."""
    python = prepare(options.venv / "cleanrl", PACKAGES, without_dependencies=[PACKAGE])

    def theirs(name: str, **more: object) -> Contender:
        return Contender(
            python=python,
            script="train_cleanrl.py",
            options={"game": GAME, "algorithm": name.removeprefix("CleanRL "), **more},
        )

    contenders = {TRACK_A: OURS[TRACK_A], TRACK_A_BF16: OURS[TRACK_A_BF16], DQN: theirs(DQN)}
    ratios, notes = [(TRACK_A, DQN), (TRACK_A_BF16, DQN)], []
    for name, rivals in IN_CHECKOUT.items():
        file = f"cleanrl/{name.removeprefix('CleanRL ')}.py"
        if options.cleanrl and (options.cleanrl / file).exists():
            contenders |= {rival: OURS[rival] for rival in rivals}
            contenders[name] = theirs(name, checkout=options.cleanrl)
            ratios += [(rival, name) for rival in rivals]
        else:
            notes.append(f"{name} was not measured: no {file} in a checkout given with --cleanrl")
    return Match(contenders=contenders, ratios=ratios, notes=notes)


if __name__ == "__main__":
    run(__doc__, [sys.modules[__name__]])
