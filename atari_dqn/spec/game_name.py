"""Name the game of a run: its ROM id, and what makes it another game."""

from __future__ import annotations

from collections.abc import Mapping

from atari_dqn.spec.keys import Scalar


def game_name(values: Mapping[str, Scalar]) -> str:
    """Name the game of a spec, by dotted key: `pong`, or `pong, flicker 0.5`; `?` for a spec without one.

    A game whose frames flicker is another game, with scores of its own.
    """
    game, flicker = str(values.get("game", "?")), values.get("env.flicker_probability", 0)
    return f"{game}, flicker {flicker:g}" if isinstance(flicker, int | float) and flicker else game
