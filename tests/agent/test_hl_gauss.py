"""HL-Gauss against loops in double precision, and its masses at extreme targets."""

import math

import numpy as np
import pytest
import torch
from parts import frames, make_batch

from atari_dqn.agent import rules
from atari_dqn.agent.distributions import Categorical, CategoricalValue
from atari_dqn.agent.heads import DuelingHead
from atari_dqn.agent.hl_gauss import HLGaussLoss, gaussian_masses
from atari_dqn.agent.init import initialize
from atari_dqn.agent.losses import TDLoss
from atari_dqn.agent.network import QNetwork
from atari_dqn.agent.targets import Bootstrap, double_dqn_target
from atari_dqn.agent.torsos import NatureTorso

ATOMS = torch.linspace(-10.0, 10.0, 51)
WIDTH = 0.4
TARGETS = torch.tensor([-1e6, -10.0, -9.93, -3.21, 0.0, 0.2, 4.4444, 9.99, 10.0, 1e6])


def masses_in_a_loop(y: float, sigma_bins: float) -> list[float]:
    """Return the mass of each bin by the normal distribution's Φ, in double precision."""
    y, sigma = min(max(y, -10.0), 10.0), sigma_bins * WIDTH
    found = []
    for place in range(51):
        centre = -10.0 + place * WIDTH
        above, below = (centre + half - y for half in (WIDTH / 2, -WIDTH / 2))
        found.append(
            0.5 * math.erf(above / sigma / math.sqrt(2)) - 0.5 * math.erf(below / sigma / math.sqrt(2))
        )
    return [mass / math.fsum(found) for mass in found]


@pytest.mark.parametrize("sigma_bins", [0.1, 0.75, 3.0])
def test_masses_are_those_of_the_normal_distribution(sigma_bins: float) -> None:
    expected = [masses_in_a_loop(y, sigma_bins) for y in TARGETS.tolist()]
    found = gaussian_masses(TARGETS, ATOMS, sigma_bins).numpy()
    np.testing.assert_allclose(found, np.array(expected), rtol=0, atol=1e-5)


def test_masses_by_hand() -> None:
    # y = 0, σ = 0.5, atoms −1, 0, 1: Φ(1) − Φ(−1) = 0.682689 in the middle, Φ(3) − Φ(1) = 0.157305
    found = gaussian_masses(torch.zeros(1), torch.tensor([-1.0, 0.0, 1.0]), 0.5)[0]
    total = 0.682689 + 2 * 0.157305
    assert found.tolist() == pytest.approx([0.157305 / total, 0.682689 / total, 0.157305 / total], abs=1e-6)


def test_masses_sum_to_one_and_are_finite_at_any_target() -> None:
    mass = gaussian_masses(TARGETS, ATOMS, 0.75)
    assert torch.isfinite(mass).all()
    assert mass.sum(dim=1).tolist() == pytest.approx([1.0] * len(TARGETS), abs=1e-6)


def test_mean_of_the_masses_is_the_target_inside_the_support() -> None:
    y = torch.linspace(-8.5, 8.5, 171)  # five σ inside
    found = gaussian_masses(y, ATOMS, 0.75).double() @ ATOMS.double()
    assert (found - y).abs().max() < 1e-4 * WIDTH


def test_mean_of_the_masses_stays_in_the_support_at_extreme_targets() -> None:
    mean = gaussian_masses(torch.tensor([-1e6, 1e6]), ATOMS, 0.75) @ ATOMS
    assert -10.0 < mean[0] < -9.0
    assert 9.0 < mean[1] < 10.0


def loss_in_a_loop(logits: np.ndarray, z_t: np.ndarray, r: float, discount: float) -> float:
    """Return the cross-entropy of one transition in double precision."""
    next_mass = np.exp(z_t - z_t.max())
    q_t = float((next_mass / next_mass.sum()) @ (np.arange(51) * WIDTH - 10.0))
    log_mass = logits - logits.max() - math.log(np.exp(logits - logits.max()).sum())
    return -float(np.array(masses_in_a_loop(r + discount * q_t, 0.75)) @ log_mass)


def test_loss_is_the_cross_entropy_in_double_precision() -> None:
    generator = torch.Generator().manual_seed(0)
    outputs, z_t = torch.randn(6, 3, 51, generator=generator), 3 * torch.randn(6, 51, generator=generator)
    a, r, discount = torch.tensor([0, 1, 2, 0, 1, 2]), torch.linspace(-1, 1, 6), torch.full((6,), 0.99)
    discount[2] = 0.0
    loss = HLGaussLoss(sigma_bins=0.75, priority=rules.kl_divergence)
    found = loss(Categorical(outputs, ATOMS), a, Bootstrap(r_t=r, discount_t=discount, z_t=z_t))
    expected = [
        loss_in_a_loop(outputs[row, a[row]].double().numpy(), z_t[row].double().numpy(), *numbers)
        for row, numbers in enumerate(zip(r.tolist(), discount.tolist(), strict=True))
    ]
    assert found.loss.tolist() == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("reward", [-1e6, 1e6])
def test_loss_and_gradient_are_finite_at_extreme_rewards(reward: float) -> None:
    torso = NatureTorso(stack=4, frame_shape=(36, 36), streams=2)
    value = CategoricalValue(v_min=-10.0, v_max=10.0, num_atoms=51)
    network = QNetwork(torso, DuelingHead(torso.num_features, 3, value.size), value)
    initialize(network, init="he_uniform", generator=torch.Generator().manual_seed(0))
    loss = TDLoss(
        target_rule=double_dqn_target,
        distribution_loss=HLGaussLoss(sigma_bins=0.75, priority=rules.kl_divergence),
    )
    output = loss(make_batch(r_t=torch.full((4,), reward)), network, network, torch.Generator())
    output.loss.sum().backward()
    assert torch.isfinite(output.priorities).all()
    assert all(torch.isfinite(parameter.grad).all() for parameter in network.parameters())
    assert network(frames(2)).abs().max() <= 10.0
