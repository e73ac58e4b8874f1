"""Convert a recorded game to plain data for a browser.

Position t, from 0 to T − 1, is what the agent got before its decision t; position T is the end of the game.
Legend: T decisions, K bins of a value distribution.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from atari_dqn.evaluation.traces import BestReturns
from atari_dqn.record.binned_returns import binned
from atari_dqn.record.packing import pack
from atari_dqn.record.playback import playback
from atari_dqn.record.recording import RecordedGame, Recording
from atari_dqn.record.web.screens import CompressedScreens

OnStep = Callable[[], None]


def game_data(recording: Recording, game: RecordedGame, *, on_step: OnStep) -> dict[str, Any]:
    """Return the screens, numbers and decisions of a game; `on_step` is called after each agent step.

    Raise `DamagedError` if playback of the game does not give the recorded result.
    """
    screens = CompressedScreens()
    scores, lives, frames, obscured = [], [], [0], []
    for step in playback(recording, game):
        screens.add(step.screens)
        scores.append(step.score)
        lives.append(step.lives[-1])
        frames.append(frames[-1] + len(step.screens))
        obscured.append(step.obscured)
        on_step()
    trace = game.trace
    return {
        **screens.data(),
        "score": pack(np.array(scores, np.float32)),
        "lives": pack(np.array(lives, np.int32)),
        "frame": pack(np.array(frames[1:], np.int32)),
        "obscured": pack(np.array(obscured, np.uint8)),
        "action": pack(trace.actions),
        "explored": pack(trace.explored.astype(np.uint8)),
        "values": pack(trace.values.astype(np.float32)),
        "saliency": None if game.saliency is None else pack(game.saliency),
        "returns": None if trace.best_returns is None else _returns(trace.best_returns, len(trace.actions)),
    }


def _returns(returns: BestReturns, steps: int) -> dict[str, Any]:
    """Return the binned value distributions, with shares from 0 to 255."""
    bins = binned(returns, steps)
    return {
        "low": bins.low,
        "high": bins.high,
        "share": pack((bins.share * 255).round().astype(np.uint8)),
        "edge_mass": None if bins.edge_mass is None else pack(bins.edge_mass.astype(np.float32)),
    }
