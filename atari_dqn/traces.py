"""What was decided in each game of an evaluation: enough, with the game's streams, to show it again.

T agent steps of one game, A actions, Z points of a return's distribution.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Bool, Float16, Float32, UInt8


@dataclass(frozen=True, eq=False, kw_only=True)
class Returns:
    """How the return of the best action might come out: points in order, and their masses.

    What is the same at every step has one row: the atoms of C51, the masses of quantiles.
    """

    points: Float32[np.ndarray, "#T Z"]
    mass: Float16[np.ndarray, "#T Z"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Trace:
    """One game's decisions, in order."""

    actions: UInt8[np.ndarray, "T"]
    """Index of the action taken; a sticky draw may still have held the one before."""
    explored: Bool[np.ndarray, "T"]
    """Whether the ε draw chose at random."""
    values: Float32[np.ndarray, "T A"]
    """What the network expected of each action."""
    returns: Returns | None = None
    """None of a network that predicts no distribution."""


@dataclass(slots=True)
class _Decisions:
    """A growing trace, as bytes: a tenth of what a list of arrays takes."""

    actions: bytearray = field(default_factory=bytearray)
    explored: bytearray = field(default_factory=bytearray)
    values: bytearray = field(default_factory=bytearray)
    points: _Rows = field(default_factory=lambda: _Rows())
    mass: _Rows = field(default_factory=lambda: _Rows())


class _Rows:
    """A growing table; a row that equals the one before is held once."""

    def __init__(self) -> None:
        self._rows: list[bytes] = []

    def add(self, row: bytes) -> None:
        same = self._rows and self._rows[-1] == row
        self._rows.append(self._rows[-1] if same else row)

    def table(self, dtype: type[np.generic]) -> np.ndarray | None:
        """Return all rows, or one if they are equal; None if there are none."""
        rows = self._rows[:1] if all(row is self._rows[0] for row in self._rows) else self._rows
        return np.frombuffer(b"".join(rows), dtype).reshape(len(rows), -1) if rows else None


class Tracer:
    """Collects the traces of an evaluation that it is given to."""

    def __init__(self) -> None:
        self._games: dict[int, _Decisions] = {}

    def decided(
        self,
        episode: int,
        *,
        action: int,
        explored: bool,
        values: Float32[np.ndarray, "A"],
        returns: tuple[Float32[np.ndarray, "Z"], Float32[np.ndarray, "Z"]] | None = None,
    ) -> None:
        """Add one decision to a game's trace; `returns` are the points and masses of the best action's."""
        game = self._games.setdefault(episode, _Decisions())
        game.actions.append(action)
        game.explored.append(explored)
        game.values += values.tobytes()
        if returns is not None:
            points, mass = returns
            game.points.add(points.astype(np.float32).tobytes())
            game.mass.add(mass.astype(np.float16).tobytes())

    def trace(self, episode: int) -> Trace:
        """Return the trace of a game of the evaluation."""
        game = self._games[episode]
        points, mass = game.points.table(np.float32), game.mass.table(np.float16)
        return Trace(
            actions=np.frombuffer(bytes(game.actions), np.uint8),
            explored=np.frombuffer(bytes(game.explored), np.bool_),
            values=np.frombuffer(bytes(game.values), np.float32).reshape(len(game.actions), -1),
            returns=None if points is None or mass is None else Returns(points=points, mass=mass),
        )
