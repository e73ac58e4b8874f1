"""Read the returns of Dopamine's training games, iteration by iteration, from a clone of its repository.

The clone is of google/dopamine at the commit that `compare/reference/sources.toml` names. An iteration is a
million emulator frames, and its value is the mean return of the training games that ended in it.
"""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl

from atari_dqn.spec.games import SINGLE_PLAYER_GAMES

FRAMES_PER_ITERATION = 1_000_000
AGENTS = {
    "C51": "c51",
    "DQN": "dqn",
    "DQN (Adam + MSE in JAX)": "dqn_adam_mse",
    "IQN": "iqn",
    "QR-DQN": "qr_dqn",
    "Quantile (JAX)": "qr_dqn",
    "Rainbow": "rainbow",
}
"""The names of our tables by those of the files."""
OLDER_JAX_AGENTS = ("DQN (Adam + MSE in JAX)", "Quantile (JAX)")
"""In the files of the TensorFlow agents."""
CODEBASES = {"": "tf", "_CNN": "jax", "_Impala": "jax_impala"}
"""By how the name of a file ends."""


def iterations(clone: Path) -> pl.DataFrame:
    """Return the value of each run's iteration: `codebase`, `agent`, `game`, `env_frames`, `mean_return`."""
    folder = clone / "baselines" / "atari" / "data"
    games = {game.replace("_", ""): game for game in SINGLE_PLAYER_GAMES}
    found = [
        _values(file, codebase, games[file.stem.removesuffix(suffix)])
        for suffix, codebase in CODEBASES.items()
        for file in sorted(folder.glob(f"*{suffix}.json"))
        if file.stem.removesuffix(suffix) in games
    ]
    if not found:
        raise SystemExit(f"{folder}: no curves")
    return pl.concat(found)


def _values(file: Path, codebase: str, game: str) -> pl.DataFrame:
    rows = pl.DataFrame(json.loads(file.read_text(encoding="utf-8")))
    is_older = pl.col("Agent").is_in(OLDER_JAX_AGENTS)
    return rows.select(
        codebase=pl.when(is_older).then(pl.lit("jax_legacy")).otherwise(pl.lit(codebase)),
        agent=pl.col("Agent").replace_strict(AGENTS),
        game=pl.lit(game),
        env_frames=(pl.col("Iteration") + 1) * FRAMES_PER_ITERATION,
        mean_return=pl.col("Value").cast(pl.Float64).round(3),
    )
