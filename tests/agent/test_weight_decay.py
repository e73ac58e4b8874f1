"""Adam with decoupled weight decay equals the equations of Loshchilov & Hutter (2019) in double precision."""

import math

import pytest
import torch
from parts import SIDE, make_batch, make_learner
from tiny import TINY_CATCH
from torch import nn

from atari_dqn.agent.heads import LinearHead
from atari_dqn.agent.impala import ImpalaTorso
from atari_dqn.agent.network import QNetwork
from atari_dqn.agent.optimizers import adam
from atari_dqn.assembly.parts import build_optimizer
from atari_dqn.spec.loader import load_spec

RATE, DECAY, EPSILON, BETA1, BETA2 = 0.01, 0.1, 1e-3, 0.9, 0.999
VALUES = {"learning_rate": RATE, "epsilon": EPSILON, "beta1": BETA1, "beta2": BETA2}


def reference(weight: float, gradients: list[float], decay: float) -> float:
    m = v = 0.0
    for step, gradient in enumerate(gradients, start=1):
        weight *= 1 - RATE * decay
        m = BETA1 * m + (1 - BETA1) * gradient
        v = BETA2 * v + (1 - BETA2) * gradient**2
        root = math.sqrt(v / (1 - BETA2**step)) + EPSILON
        weight -= RATE * (m / (1 - BETA1**step)) / root
    return weight


@pytest.mark.parametrize(("shape", "decay"), [((1, 1), DECAY), ((1,), 0.0)], ids=["weight", "bias"])
def test_steps_equal_the_equations_and_biases_do_not_decay(shape: tuple[int, ...], decay: float) -> None:
    weight = torch.nn.Parameter(torch.full(shape, 2.0))
    optimizer, gradients = adam([weight], weight_decay=DECAY, **VALUES), [0.5, -1.0, 3.0, 0.01]
    for gradient in gradients:
        weight.grad = torch.full(shape, gradient)
        optimizer.step()
    assert weight.item() == pytest.approx(reference(2.0, gradients, decay), abs=1e-5)


def test_without_decay_it_is_adam_itself() -> None:
    assert type(adam([torch.nn.Parameter(torch.ones(1))], weight_decay=0.0, **VALUES)) is torch.optim.Adam


def test_gradient_that_is_not_finite_decays_nothing() -> None:
    learner = make_learner(optimizer=lambda weights: adam(weights, weight_decay=DECAY, **VALUES))
    before = learner.online.head.output.weight.detach().clone()
    learner.update(make_batch(weight=torch.full((4,), torch.nan)))
    assert torch.equal(learner.online.head.output.weight, before)


def test_normalisation_layers_of_images_do_not_decay() -> None:
    torso = ImpalaTorso(stack=4, frame_shape=(SIDE, SIDE), hidden_units=16, layer_norm=True)
    network = QNetwork(torso, LinearHead(torso.num_features, 3))
    spec = load_spec(TINY_CATCH, ["optimizer.kind=adam", f"optimizer.weight_decay={DECAY}"]).spec
    for weight in network.parameters():
        torch.nn.init.ones_(weight)
        weight.grad = torch.zeros_like(weight)
    build_optimizer(network, spec.optimizer).step()
    decayed = {name for name, weight in network.named_parameters() if (weight < 1).any()}
    layers = [name for name, each in network.named_modules() if isinstance(each, nn.Conv2d | nn.Linear)]
    assert decayed == {f"{name}.weight" for name in layers}
