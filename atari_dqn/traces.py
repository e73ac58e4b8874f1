"""What was decided in each game of an evaluation: enough, with the game's streams, to show it again.

T agent steps of one game, A actions.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Bool, Float32, UInt8


@dataclass(frozen=True, eq=False, kw_only=True)
class Trace:
    """One game's decisions, in order."""

    actions: UInt8[np.ndarray, "T"]
    """Index of the action taken; a sticky draw may still have held the one before."""
    explored: Bool[np.ndarray, "T"]
    """Whether the ε draw chose at random."""
    values: Float32[np.ndarray, "T A"]
    """What the network expected of each action."""


@dataclass(slots=True)
class _Decisions:
    """A growing trace, as bytes: a tenth of what a list of arrays takes."""

    actions: bytearray = field(default_factory=bytearray)
    explored: bytearray = field(default_factory=bytearray)
    values: bytearray = field(default_factory=bytearray)


class Tracer:
    """Collects the traces of an evaluation that it is given to."""

    def __init__(self) -> None:
        self._games: dict[int, _Decisions] = {}

    def decided(self, episode: int, *, action: int, explored: bool, values: Float32[np.ndarray, "A"]) -> None:
        """Add one decision to a game's trace."""
        game = self._games.setdefault(episode, _Decisions())
        game.actions.append(action)
        game.explored.append(explored)
        game.values += values.tobytes()

    def trace(self, episode: int) -> Trace:
        """Return the trace of a game of the evaluation."""
        game = self._games[episode]
        return Trace(
            actions=np.frombuffer(bytes(game.actions), np.uint8),
            explored=np.frombuffer(bytes(game.explored), np.bool_),
            values=np.frombuffer(bytes(game.values), np.float32).reshape(len(game.actions), -1),
        )
