"""HL-Gauss: q-values learned by classification. Farebrother et al. (2024), "Stop regressing", section 3.1.

The target of a q-value is a Gaussian around it, as masses of bins whose centres are the atoms of a
categorical distribution. B minibatch, Z atoms.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from atari_dqn.agent import rules
from atari_dqn.agent.distributions import Categorical
from atari_dqn.agent.losses import Divergence, LossTerms, categorical_terms
from atari_dqn.agent.targets import Bootstrap


def gaussian_masses(
    y: Float[Tensor, "B"], atoms: Float[Tensor, "Z"], sigma_bins: float
) -> Float[Tensor, "B Z"]:
    """Compute Φ((b₊ − y) / σ) − Φ((b₋ − y) / σ) for the edges b of the bin of each atom, divided by its sum.

    A bin is as wide as the atoms are apart, ς, and σ is `sigma_bins` · ς. At least five σ inside the
    support the mean is y, to about 1e-5 ς with σ = 0.75 ς; nearer to an edge it is pulled inwards. A target
    outside the support is clipped to the edge.
    """
    width = atoms[1] - atoms[0]
    edges = torch.cat([atoms - width / 2, atoms[-1:] + width / 2])
    inside = y.clamp(atoms[0], atoms[-1])
    scaled = (edges - inside[:, None]) / (sigma_bins * width * math.sqrt(2.0))
    mass = scaled.erf().diff(dim=1)  # twice the differences of Φ
    return mass / mass.sum(dim=1, keepdim=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class HLGaussLoss:
    """Cross-entropy from the masses of a Gaussian around the target r + γ q to the prediction."""

    sigma_bins: float
    priority: Divergence
    """One of `CATEGORICAL_PRIORITIES`."""

    def __call__(self, predicted: Categorical, a_tm1: Int64[Tensor, "B"], bootstrap: Bootstrap) -> LossTerms:
        """Compute the loss of masses on atoms."""
        atoms = predicted.atoms
        q_t = bootstrap.z_t.softmax(dim=1) @ atoms
        y = rules.bellman_target(bootstrap.r_t, bootstrap.discount_t, q_t[:, None]).squeeze(1)
        target = gaussian_masses(y, atoms, self.sigma_bins)
        return categorical_terms(target, predicted, a_tm1, rules.cross_entropy, self.priority)
