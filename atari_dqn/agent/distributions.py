"""Value distributions: the return of every action as its mean, as masses on atoms, or as quantiles.

B batch, A actions, Z numbers per action.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn


@dataclass(frozen=True, slots=True, eq=False)
class ValueDistribution(ABC):
    """The outputs of a head, interpreted as distributions of returns."""

    outputs: Float[Tensor, "B A Z"]
    """Z numbers for each action."""

    @abstractmethod
    def q_values(self) -> Float[Tensor, "B A"]:
        """Compute the expected return of every action."""

    @abstractmethod
    def distribution(self) -> tuple[Float[Tensor, "B A Z"], Float[Tensor, "B A Z"]]:
        """Compute the points of every action's distribution and their masses, which sum to 1."""

    def statistics(self) -> dict[str, Float[Tensor, "B A"]]:
        """Compute statistics of every action's distribution, by name, for `diagnostics`."""
        return {}


@dataclass(frozen=True, slots=True, eq=False)
class Scalar(ValueDistribution):
    """The expected return itself, Z = 1."""

    def q_values(self) -> Float[Tensor, "B A"]:
        """Return the outputs, which are the q-values."""
        return self.outputs.squeeze(2)

    def distribution(self) -> tuple[Float[Tensor, "B A Z"], Float[Tensor, "B A Z"]]:
        """Put all the mass on the q-value."""
        return self.outputs, torch.ones_like(self.outputs)


@dataclass(frozen=True, slots=True, eq=False)
class Categorical(ValueDistribution):
    """A logit for each of Z evenly spaced atoms. Bellemare et al. (2017)."""

    atoms: Float[Tensor, "Z"]

    def q_values(self) -> Float[Tensor, "B A"]:
        """Compute the mean over atoms."""
        return self.outputs.softmax(dim=2) @ self.atoms

    def distribution(self) -> tuple[Float[Tensor, "B A Z"], Float[Tensor, "B A Z"]]:
        """Compute the masses on the atoms."""
        return self.atoms.expand_as(self.outputs), self.outputs.softmax(dim=2)

    def statistics(self) -> dict[str, Float[Tensor, "B A"]]:
        """Compute the standard deviation, and the edge atoms' masses: large if the support is too narrow."""
        points, mass = self.distribution()
        return {
            "std_return": _standard_deviation(points, mass),
            "lowest_atom_mass": mass[:, :, 0],
            "highest_atom_mass": mass[:, :, -1],
        }


@dataclass(frozen=True, slots=True, eq=False)
class Quantiles(ValueDistribution):
    """The return's quantile at each of Z fractions. Dabney et al. (2018)."""

    fractions: Float[Tensor, "#B Z"]

    def q_values(self) -> Float[Tensor, "B A"]:
        """Compute the mean over quantiles."""
        return self.outputs.mean(dim=2)

    def distribution(self) -> tuple[Float[Tensor, "B A Z"], Float[Tensor, "B A Z"]]:
        """Sort the quantiles; all have the same mass."""
        return self.outputs.sort(dim=2).values, torch.full_like(self.outputs, 1 / self.outputs.shape[2])

    def statistics(self) -> dict[str, Float[Tensor, "B A"]]:
        """Compute the standard deviation and the share of crossed neighbours; fractions must ascend."""
        crossed = self.outputs.diff(dim=2) < 0
        return {
            "std_return": _standard_deviation(*self.distribution()),
            "crossed_share": crossed.float().mean(dim=2),
        }


def _standard_deviation(points: Float[Tensor, "B A Z"], mass: Float[Tensor, "B A Z"]) -> Float[Tensor, "B A"]:
    mean = (points * mass).sum(dim=2, keepdim=True)
    return ((points - mean).square() * mass).sum(dim=2).sqrt()


class ValueLayer(nn.Module, ABC):
    """The last module of a network: turns the outputs of a head into a value distribution."""

    size: int
    """Z."""

    @abstractmethod
    def forward(self, outputs: Float[Tensor, "B A Z"]) -> ValueDistribution:
        """Make a value distribution from outputs."""


class ScalarValue(ValueLayer):
    """One value per action."""

    size = 1

    def forward(self, outputs: Float[Tensor, "B A Z"]) -> Scalar:
        """Interpret the outputs as q-values."""
        return Scalar(outputs)


class CategoricalValue(ValueLayer):
    """A logit for each of `num_atoms` atoms from `v_min` to `v_max`."""

    atoms: Tensor

    def __init__(self, *, v_min: float, v_max: float, num_atoms: int) -> None:
        super().__init__()
        self.size = num_atoms
        self.register_buffer("atoms", torch.linspace(v_min, v_max, num_atoms), persistent=False)

    def forward(self, outputs: Float[Tensor, "B A Z"]) -> Categorical:
        """Interpret the outputs as logits."""
        return Categorical(outputs, self.atoms)


class QuantileValue(ValueLayer):
    """Quantiles at the midpoints of `num_quantiles` equal intervals of (0, 1)."""

    fractions: Tensor

    def __init__(self, *, num_quantiles: int) -> None:
        super().__init__()
        self.size = num_quantiles
        self.register_buffer("fractions", midpoints(num_quantiles)[None], persistent=False)

    def forward(self, outputs: Float[Tensor, "B A Z"]) -> Quantiles:
        """Interpret the outputs as quantiles."""
        return Quantiles(outputs, self.fractions)


def midpoints(count: int, device: torch.device | None = None) -> Float[Tensor, "Z"]:
    """Compute the midpoints of `count` equal intervals of (0, 1)."""
    return (torch.arange(count, device=device) + 0.5) / count
