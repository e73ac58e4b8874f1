"""BTR's loss, Munchausen-IQN with n-step returns, against loops in double precision."""

import math
from typing import Literal

import numpy as np
import pytest
import torch

from atari_dqn.agent.distributions import Quantiles
from atari_dqn.agent.losses import TDLoss, quantile_loss
from atari_dqn.agent.targets import MunchausenTarget
from atari_dqn.minibatch import Minibatch

ALPHA, TAU, LOWEST = 0.9, 0.03, -1.0
B, A, N, TARGETS, POLICY = 5, 4, 8, 7, 6


class FixedNetwork:
    """A network whose quantiles are given, in place of an implicit quantile network."""

    def __init__(self, generator: torch.Generator) -> None:
        self.quantiles = torch.randn(B, A, N, generator=generator)
        self.fractions = torch.rand(B, N, generator=generator)
        self.next_quantiles = torch.randn(B, A, TARGETS, generator=generator)
        self.q_tm1 = 0.1 * torch.randn(B, A, generator=generator)
        self.q_t = 0.1 * torch.randn(B, A, generator=generator)

    def predicted_distribution(self, *_: object) -> Quantiles:
        return Quantiles(self.quantiles, self.fractions)

    def target_distribution_and_q_values(self, *_: object) -> tuple[Quantiles, torch.Tensor]:
        return Quantiles(self.next_quantiles, torch.rand(B, TARGETS)), self.q_t

    def q_values(self, *_: object) -> torch.Tensor:
        return self.q_tm1


def log_policy(q: np.ndarray) -> np.ndarray:
    """Return ln π, with π the softmax of q / τ."""
    largest = max(q) / TAU
    total = sum(math.exp(value / TAU - largest) for value in q)
    return np.array([value / TAU - largest - math.log(total) for value in q])


def loss_in_a_loop(
    online: FixedNetwork, target: FixedNetwork, bonus_of: FixedNetwork, batch: Minibatch, row: int
) -> float:
    """Return the loss of one transition: Vieillard et al. (2020), eq. 2; Dabney et al. (2018b), eq. 3."""
    a = int(batch.a_tm1[row])
    bonus = ALPHA * min(0.0, max(LOWEST, TAU * log_policy(bonus_of.q_tm1[row].double().numpy())[a]))
    log_pi = log_policy(target.q_t[row].double().numpy())
    targets = []
    for j in range(TARGETS):
        soft = sum(
            math.exp(log_pi[b]) * (float(target.next_quantiles[row, b, j]) - TAU * log_pi[b])
            for b in range(A)
        )
        targets.append(float(batch.r_t[row]) + bonus + float(batch.discount_t[row]) * soft)
    loss = 0.0
    for i in range(N):
        for y in targets:
            error = y - float(online.quantiles[row, a, i])
            huber = 0.5 * error**2 if abs(error) <= 1 else abs(error) - 0.5
            loss += abs(float(online.fractions[row, i]) - (error < 0)) * huber / TARGETS
    return loss


@pytest.mark.parametrize("bonus_of", ["target", "online"])
def test_loss_of_btr_is_that_of_the_papers_in_double_precision(
    bonus_of: Literal["target", "online"],
) -> None:
    generator = torch.Generator().manual_seed(0)
    online, target = FixedNetwork(generator), FixedNetwork(generator)
    frames = torch.zeros(B, 4, 36, 36, dtype=torch.uint8)
    weight = torch.tensor([1.0, 0.5, 0.25, 1.0, 0.75])
    batch = Minibatch(
        s_tm1=frames, a_tm1=torch.tensor([0, 1, 2, 3, 1]), r_t=torch.tensor([1.0, -0.5, 2.9, 0.0, -3.0]),
        discount_t=torch.tensor([0.997**3, 0.0, 0.997**2, 0.997, 0.997**3]), s_t=frames,
        weight=weight, index=torch.arange(B),
    )  # fmt: skip
    loss = TDLoss(
        target_rule=MunchausenTarget(scale=ALPHA, temperature=TAU, lowest=LOWEST, bonus_of=bonus_of),
        distribution_loss=quantile_loss,
    )
    found = loss(batch, online, target, generator)
    bonus_network = {"target": target, "online": online}[bonus_of]
    expected = [loss_in_a_loop(online, target, bonus_network, batch, row) for row in range(B)]
    assert found.priorities.tolist() == pytest.approx(expected, rel=1e-5)
    assert found.loss.tolist() == pytest.approx(
        [a * float(b) for a, b in zip(expected, weight, strict=True)], rel=1e-5
    )
