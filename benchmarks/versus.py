"""Every comparison of training speed in one run: our agents, Stable-Baselines3's and CleanRL's, taking turns.

What each of them is, and what is the same for all, `tracks.py`, `versus_sb3.py` and `versus_cleanrl.py` say.
--rows measures a part, --isa holds all to one instruction set, and --beside has busy programs run meanwhile.
"""

from __future__ import annotations

import tracks
import versus_cleanrl
import versus_sb3
from training_speed import run

if __name__ == "__main__":
    run(__doc__, [tracks, versus_sb3, versus_cleanrl])
