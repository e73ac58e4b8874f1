"""Record the decisions in the games of an evaluation; with the random streams they reproduce the games.

Legend: T agent steps of one game, A actions, Z points of a value distribution.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Bool, Float16, Float32, UInt8


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class BestReturn:
    """The value distribution of the greedy action at one step: sorted points and their probabilities."""

    points: Float32[np.ndarray, "Z"]
    mass: Float32[np.ndarray, "Z"]
    atoms: bool
    """True for C51, whose points are the same at every step; False for quantiles, with constant masses."""


@dataclass(frozen=True, eq=False, kw_only=True)
class BestReturns:
    """The value distributions of a game. Constant points (of atoms) or masses (of quantiles) have one row."""

    points: Float32[np.ndarray, "#T Z"]
    mass: Float16[np.ndarray, "#T Z"]
    atoms: bool


@dataclass(frozen=True, eq=False, kw_only=True)
class Trace:
    """The decisions in one game, in time order."""

    actions: UInt8[np.ndarray, "T"]
    """Index of the selected action; with sticky actions the emulator may have repeated the previous one."""
    explored: Bool[np.ndarray, "T"]
    """Whether the action was selected at random by ε-greedy exploration."""
    values: Float32[np.ndarray, "T A"]
    """The Q-values of the network."""
    best_returns: BestReturns | None = None
    """None for a network without a value distribution."""


@dataclass(slots=True)
class _Decisions:
    """A growing trace as bytes, which take a tenth of the memory of a list of arrays."""

    actions: bytearray = field(default_factory=bytearray)
    explored: bytearray = field(default_factory=bytearray)
    values: bytearray = field(default_factory=bytearray)
    first: BestReturn | None = None
    """The value distribution at the first step."""
    distributions: bytearray = field(default_factory=bytearray)
    """The masses of atoms, or the quantiles, of all steps."""

    def add(self, best_return: BestReturn) -> None:
        """Append the part that changes from step to step."""
        self.first = self.first or best_return
        varying = best_return.mass.astype(np.float16) if best_return.atoms else best_return.points
        self.distributions += varying.tobytes()

    def best_returns(self) -> BestReturns | None:
        """Return the value distributions; None if there are none."""
        if self.first is None:
            return None
        points, mass, data = self.first.points[None], self.first.mass[None], bytes(self.distributions)
        if self.first.atoms:
            mass = np.frombuffer(data, np.float16).reshape(-1, mass.shape[1])
        else:
            points = np.frombuffer(data, np.float32).reshape(-1, points.shape[1])
        return BestReturns(points=points, mass=mass.astype(np.float16), atoms=self.first.atoms)


class Tracer:
    """Collects the traces of the games of an evaluation."""

    def __init__(self) -> None:
        self._games: dict[int, _Decisions] = {}

    def record(
        self,
        episode: int,
        *,
        action: int,
        explored: bool,
        values: Float32[np.ndarray, "A"],
        best_return: BestReturn | None = None,
    ) -> None:
        """Append one decision to the trace of a game."""
        game = self._games.setdefault(episode, _Decisions())
        game.actions.append(action)
        game.explored.append(explored)
        game.values += values.tobytes()
        if best_return is not None:
            game.add(best_return)

    def trace(self, episode: int) -> Trace:
        """Return the trace of a game."""
        game = self._games[episode]
        return Trace(
            actions=np.frombuffer(bytes(game.actions), np.uint8),
            explored=np.frombuffer(bytes(game.explored), np.bool_),
            values=np.frombuffer(bytes(game.values), np.float32).reshape(len(game.actions), -1),
            best_returns=game.best_returns(),
        )
