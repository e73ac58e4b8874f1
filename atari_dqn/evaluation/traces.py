"""What was decided in each game of an evaluation: enough, with the game's streams, to show it again.

T agent steps of one game, A actions, Z points of a return's distribution.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Bool, Float16, Float32, UInt8


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class BestReturn:
    """How the return of the best action might come out at one step: points in order, and their masses."""

    points: Float32[np.ndarray, "Z"]
    mass: Float32[np.ndarray, "Z"]
    atoms: bool
    """Whether it is the points that are the same at every step; if not, the masses are."""


@dataclass(frozen=True, eq=False, kw_only=True)
class BestReturns:
    """The same over a game; what never changes has one row: the points of atoms, the masses of quantiles."""

    points: Float32[np.ndarray, "#T Z"]
    mass: Float16[np.ndarray, "#T Z"]
    atoms: bool


@dataclass(frozen=True, eq=False, kw_only=True)
class Trace:
    """One game's decisions, in order."""

    actions: UInt8[np.ndarray, "T"]
    """Index of the action taken; a sticky draw may still have held the one before."""
    explored: Bool[np.ndarray, "T"]
    """Whether the ε draw chose at random."""
    values: Float32[np.ndarray, "T A"]
    """What the network expected of each action."""
    best_returns: BestReturns | None = None
    """None of a network that predicts no distribution."""


@dataclass(slots=True)
class _Decisions:
    """A growing trace, as bytes: a tenth of what a list of arrays takes."""

    actions: bytearray = field(default_factory=bytearray)
    explored: bytearray = field(default_factory=bytearray)
    values: bytearray = field(default_factory=bytearray)
    first: BestReturn | None = None
    """The first step's."""
    distributions: bytearray = field(default_factory=bytearray)
    """Masses on atoms, or quantiles, step after step."""

    def add(self, best_return: BestReturn) -> None:
        """Add what changes from step to step."""
        self.first = self.first or best_return
        varying = best_return.mass.astype(np.float16) if best_return.atoms else best_return.points
        self.distributions += varying.tobytes()

    def best_returns(self) -> BestReturns | None:
        """Return what was added."""
        if self.first is None:
            return None
        points, mass, data = self.first.points[None], self.first.mass[None], bytes(self.distributions)
        if self.first.atoms:
            mass = np.frombuffer(data, np.float16).reshape(-1, mass.shape[1])
        else:
            points = np.frombuffer(data, np.float32).reshape(-1, points.shape[1])
        return BestReturns(points=points, mass=mass.astype(np.float16), atoms=self.first.atoms)


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
        best_return: BestReturn | None = None,
    ) -> None:
        """Add one decision to a game's trace."""
        game = self._games.setdefault(episode, _Decisions())
        game.actions.append(action)
        game.explored.append(explored)
        game.values += values.tobytes()
        if best_return is not None:
            game.add(best_return)

    def trace(self, episode: int) -> Trace:
        """Return the trace of a game of the evaluation."""
        game = self._games[episode]
        return Trace(
            actions=np.frombuffer(bytes(game.actions), np.uint8),
            explored=np.frombuffer(bytes(game.explored), np.bool_),
            values=np.frombuffer(bytes(game.values), np.float32).reshape(len(game.actions), -1),
            best_returns=game.best_returns(),
        )
