"""What a network predicts of every action's return: one value, masses on atoms, or quantiles.

B batch, A actions, Z numbers per action.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn


@dataclass(frozen=True, slots=True, eq=False)
class Prediction(ABC):
    """A network's outputs, and what they mean."""

    outputs: Float[Tensor, "B A Z"]
    """Z numbers for each action."""

    @abstractmethod
    def q_values(self) -> Float[Tensor, "B A"]:
        """Return the expected return of every action."""

    @abstractmethod
    def distribution(self) -> tuple[Float[Tensor, "B A Z"], Float[Tensor, "B A Z"]]:
        """Return every action's return as points and their masses, which add up to 1; for people to see."""

    def shape(self) -> dict[str, Float[Tensor, "B A"]]:
        """Return what tells of every action whether the kind suits its return, by name; for people."""
        return {}


@dataclass(frozen=True, slots=True, eq=False)
class Value(Prediction):
    """The expected return itself, Z = 1."""

    def q_values(self) -> Float[Tensor, "B A"]:
        """Return the outputs."""
        return self.outputs.squeeze(2)

    def distribution(self) -> tuple[Float[Tensor, "B A Z"], Float[Tensor, "B A Z"]]:
        """Return the one point that is known, with all the mass."""
        return self.outputs, torch.ones_like(self.outputs)


@dataclass(frozen=True, slots=True, eq=False)
class Categorical(Prediction):
    """A logit for each of Z evenly spaced atoms. Bellemare et al. (2017)."""

    atoms: Float[Tensor, "Z"]

    def q_values(self) -> Float[Tensor, "B A"]:
        """Return the mean over atoms."""
        return self.outputs.softmax(dim=2) @ self.atoms

    def distribution(self) -> tuple[Float[Tensor, "B A Z"], Float[Tensor, "B A Z"]]:
        """Return atoms and the masses on them."""
        return self.atoms.expand_as(self.outputs), self.outputs.softmax(dim=2)

    def shape(self) -> dict[str, Float[Tensor, "B A"]]:
        """Return the spread, and the mass on the edges, where a support too narrow puts it."""
        points, mass = self.distribution()
        return {
            "std_return": _standard_deviation(points, mass),
            "lowest_atom_mass": mass[:, :, 0],
            "highest_atom_mass": mass[:, :, -1],
        }


@dataclass(frozen=True, slots=True, eq=False)
class Quantiles(Prediction):
    """The return's quantile at each of Z fractions. Dabney et al. (2018)."""

    fractions: Float[Tensor, "#B Z"]
    rating: Float[Tensor, "B A K"]
    """Quantiles whose mean is the action's value: the same, or at K fractions drawn for choosing actions."""

    def q_values(self) -> Float[Tensor, "B A"]:
        """Return the mean over quantiles."""
        return self.rating.mean(dim=2)

    def distribution(self) -> tuple[Float[Tensor, "B A Z"], Float[Tensor, "B A Z"]]:
        """Return the quantiles in order, each with as much mass."""
        return self.outputs.sort(dim=2).values, torch.full_like(self.outputs, 1 / self.outputs.shape[2])

    def shape(self) -> dict[str, Float[Tensor, "B A"]]:
        """Return the spread, and which share of neighbours is in the wrong order; fractions must ascend."""
        crossed = self.outputs.diff(dim=2) < 0
        return {
            "std_return": _standard_deviation(*self.distribution()),
            "crossed_share": crossed.float().mean(dim=2),
        }


def _standard_deviation(points: Float[Tensor, "B A Z"], mass: Float[Tensor, "B A Z"]) -> Float[Tensor, "B A"]:
    mean = (points * mass).sum(dim=2, keepdim=True)
    return ((points - mean).square() * mass).sum(dim=2).sqrt()


class Output(nn.Module, ABC):
    """Says what the numbers that a head puts out for each action mean."""

    size: int
    """Z."""

    @abstractmethod
    def forward(self, outputs: Float[Tensor, "B A Z"]) -> Prediction:
        """Return the outputs as a prediction."""


class ValueOutput(Output):
    """One value."""

    size = 1

    def forward(self, outputs: Float[Tensor, "B A Z"]) -> Value:
        """Return the outputs as values."""
        return Value(outputs)


class CategoricalOutput(Output):
    """A logit for each of `num_atoms` atoms from `v_min` to `v_max`."""

    atoms: Tensor

    def __init__(self, *, v_min: float, v_max: float, num_atoms: int) -> None:
        super().__init__()
        self.size = num_atoms
        self.register_buffer("atoms", torch.linspace(v_min, v_max, num_atoms), persistent=False)

    def forward(self, outputs: Float[Tensor, "B A Z"]) -> Categorical:
        """Return the outputs as logits."""
        return Categorical(outputs, self.atoms)


class QuantileOutput(Output):
    """A quantile at the middle of each of `num_quantiles` equal parts of (0, 1)."""

    fractions: Tensor

    def __init__(self, *, num_quantiles: int) -> None:
        super().__init__()
        self.size = num_quantiles
        self.register_buffer("fractions", midpoints(num_quantiles)[None], persistent=False)

    def forward(self, outputs: Float[Tensor, "B A Z"]) -> Quantiles:
        """Return the outputs as quantiles."""
        return Quantiles(outputs, self.fractions, outputs)


def midpoints(count: int) -> Float[Tensor, "Z"]:
    """Return the middles of `count` equal parts of (0, 1)."""
    return (torch.arange(count) + 0.5) / count
