"""Frames of games that are played at random."""

from pathlib import Path

from atari_dqn.envs.games import make_envs
from atari_dqn.spec.loader import load_spec

import numpy as np

RUNS = Path(__file__).parents[1] / "runs"


def play(game: str, *, envs: int, steps: int) -> np.ndarray:
    """Return the frames that Track A's preprocessing makes of random play: u8[T, E, H, W]."""
    spec = load_spec(RUNS / "pong_trackA.toml").spec
    games = make_envs(game=game, env=spec.env, num_envs=envs, seed=1, stream="training")
    generator = np.random.default_rng(0)
    frames = [games.reset().frame.copy()]
    while len(frames) < steps:
        games.send(generator.integers(games.info.num_actions, size=envs))
        frames.append(games.recv().frame.copy())
    games.close()
    return np.stack(frames)
