"""Spectral normalisation: the singular value, what moves the vectors and what does not, exact states."""

import copy
from pathlib import Path

import numpy as np
import pytest
import torch
from parts import frames, make_batch, stream
from torch import nn

from atari_dqn.agent import rules, spectral
from atari_dqn.agent.heads import LinearHead
from atari_dqn.agent.impala import ImpalaTorso
from atari_dqn.agent.init import initialize
from atari_dqn.agent.learner import Learner
from atari_dqn.agent.losses import ScalarLoss, TDLoss
from atari_dqn.agent.network import QNetwork
from atari_dqn.agent.resets import Resets
from atari_dqn.agent.spectral import SpectralConv2d, iterate, power_iteration, spectral_layers
from atari_dqn.agent.targets import dqn_target
from atari_dqn.run.checkpoint.learner_layout import check_learner


def make_network(seed: int = 0, precision: str = "fp32") -> QNetwork:
    torso = ImpalaTorso(stack=4, frame_shape=(36, 36), spectral_norm=True, pool_size=2, hidden_units=16)
    network = QNetwork(torso, LinearHead(torso.num_features, 3), precision=precision)
    initialize(network, init="fan_in_uniform", generator=torch.Generator().manual_seed(seed))
    return network


def make_learner(accumulate: int = 1, rate: float = 0.001) -> Learner:
    online = make_network(1)
    return Learner(
        online=online,
        target=make_network(2),
        optimizer=torch.optim.Adam(online.parameters(), rate),
        loss=TDLoss(target_rule=dqn_target, distribution_loss=ScalarLoss(rules.huber)),
        reduction="mean",
        accumulate=accumulate,
        max_grad_norm=10.0,
        target_period_updates=10_000,
        generator=stream(),
        after_step=power_iteration(online),
    )


def largest_singular_value(weight: torch.Tensor) -> float:
    """Return it in double precision by another method: the root of the largest eigenvalue of W Wᵀ."""
    matrix = weight.detach().double().flatten(1).numpy()
    return float(np.sqrt(np.linalg.eigvalsh(matrix @ matrix.T)[-1]))


def vectors(network: nn.Module) -> dict[str, torch.Tensor]:
    return {name: buffer.clone() for name, buffer in network.named_buffers() if "sections" in name}


def test_only_the_convolutions_of_residual_blocks_are_normalised() -> None:
    names = [name for name, layer in make_network().named_modules() if isinstance(layer, SpectralConv2d)]
    places = [f"torso.sections.{section}.{block}" for section in range(3) for block in (2, 3)]
    assert names == [f"{place}.{layer}" for place in places for layer in ("first", "second")]


def test_new_layer_has_singular_value_one() -> None:
    for layer in spectral_layers(make_network()):
        assert largest_singular_value(layer.normalized_weight()) == pytest.approx(1.0, abs=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("rate", [1e-3, 1e-4])
def test_singular_value_is_one_after_fifty_updates(rate: float) -> None:
    learner = make_learner(rate=rate)
    for count in range(50):
        learner.update(make_batch(s_tm1=frames(4, seed=count), s_t=frames(4, seed=count + 99)))
    found = [largest_singular_value(layer.normalized_weight()) for layer in spectral_layers(learner.online)]
    assert found == pytest.approx([1.0] * 12, abs=1e-3)
    moved = [
        (layer.weight - new.weight).abs().max()
        for layer, new in zip(spectral_layers(learner.online), spectral_layers(make_network(1)), strict=True)
    ]
    assert min(moved) > 10 * rate


def test_random_vectors_converge_to_the_singular_vectors() -> None:
    layer = SpectralConv2d(4, 4, 3, padding=1)
    with torch.no_grad():
        layer.left.copy_(torch.tensor([0.5, 0.5, 0.5, 0.5]))
    iterate([layer])
    assert largest_singular_value(layer.normalized_weight()) == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize(("squarings", "power"), [(0, 9.0), (1, 81.0), (2, 6561.0)])
def test_power_iteration_by_hand(squarings: int, power: float, monkeypatch: pytest.MonkeyPatch) -> None:
    # W = [[3, 0], [0, 1]], u = (0.6, 0.8): WWᵀ = [[9, 0], [0, 1]], and u becomes (9ⁿ · 0.6, 0.8), v = Wᵀu
    monkeypatch.setattr(spectral, "SQUARINGS", squarings)
    layer = SpectralConv2d(2, 2, 1, padding=0)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[3.0, 0.0], [0.0, 1.0]]).view(2, 2, 1, 1))
        layer.left.copy_(torch.tensor([0.6, 0.8]))
    iterate([layer])
    u = np.array([0.6 * power, 0.8])
    assert layer.left.tolist() == pytest.approx((u / np.linalg.norm(u)).tolist())
    v = np.array([3 * u[0], u[1]])
    assert layer.right.tolist() == pytest.approx((v / np.linalg.norm(v)).tolist())


def test_layers_iterated_together_become_what_each_becomes_alone() -> None:
    together, alone = make_network(1), make_network(1)
    for network in (together, alone):
        with torch.no_grad():
            for layer in spectral_layers(network):
                layer.weight.mul_(torch.linspace(0.5, 2.0, layer.weight.shape[0])[:, None, None, None])
    power_iteration(together)()
    for one, other in zip(spectral_layers(together), spectral_layers(alone), strict=True):
        iterate([other])
        torch.testing.assert_close(one.left, other.left, rtol=0, atol=1e-5)
        torch.testing.assert_close(one.right, other.right, rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", ["online", "target"])
def test_singular_value_is_one_right_after_a_reset(name: str) -> None:
    learner = make_learner()
    networks = {"online": learner.online, "target": learner.target}
    resets = Resets(
        period_updates=1, last_updates=1, keep=0.5, perturb=0.5, networks=networks,
        optimizer=learner.optimizer, fresh=lambda number, name: make_network(7 + (name == "target")),
    )  # fmt: skip
    resets.reset(1)
    found = [largest_singular_value(layer.normalized_weight()) for layer in spectral_layers(networks[name])]
    assert found == pytest.approx([1.0] * 12, abs=1e-5)


def test_gradient_flows_through_the_singular_value() -> None:
    # d/dW of ⟨G, W / σ⟩ = (G − ⟨G, W / σ⟩ u vᵀ) / σ. Miyato et al. (2018), eq. 10 to 12
    layer = SpectralConv2d(3, 5, 3, padding=1)
    g = torch.randn(5, 27, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    (layer.normalized_weight().flatten(1) * g.float()).sum().backward()
    weight, u, v = (tensor.detach().double() for tensor in (layer.weight.flatten(1), layer.left, layer.right))
    sigma = u @ weight @ v
    expected = (g - (g * weight).sum() / sigma * torch.outer(u, v)) / sigma
    torch.testing.assert_close(layer.weight.grad.flatten(1).double(), expected, rtol=1e-5, atol=1e-5)


def test_evaluation_between_updates_changes_no_bit() -> None:
    learners = make_learner(), make_learner()
    for _ in range(3):
        for learner in learners:
            learner.update(make_batch())
        learners[0].online(frames(5))
        learners[0].online(frames(5).float().requires_grad_())
    states = [learner.state_dict() for learner in learners]
    for name, tensor in states[0]["online"].items():
        assert torch.equal(tensor, states[1]["online"][name]), name


def test_vectors_move_once_an_update_however_a_minibatch_is_split() -> None:
    whole, split = make_learner(), make_learner(accumulate=4)
    for learner in (whole, split):
        learner.update(make_batch())
    for name, found in vectors(whole.online).items():
        torch.testing.assert_close(found, vectors(split.online)[name], rtol=0, atol=1e-3)


def test_vectors_move_with_updates_and_are_copied_to_the_target() -> None:
    learner = make_learner()
    before = vectors(learner.online)
    learner.update(make_batch())
    learner.update(make_batch())
    after = vectors(learner.online)
    assert not any(torch.equal(after[name], before[name]) for name in before)
    learner.copy_to_target()
    assert all(map(torch.equal, vectors(learner.target).values(), after.values()))


def test_learner_lists_the_vectors_among_what_a_step_changes() -> None:
    learner = make_learner()
    places = {tensor.data_ptr() for tensor in learner.mutated_tensors()}
    assert {layer.left.data_ptr() for layer in spectral_layers(learner.online)} <= places


def test_loaded_learner_goes_on_as_the_saved_one_would() -> None:
    saved, loaded = make_learner(), make_learner()
    saved.update(make_batch())
    loaded.load_state_dict(copy.deepcopy(saved.state_dict()))
    for learner in (saved, loaded):
        learner.update(make_batch())
    first, second = saved.state_dict()["online"], loaded.state_dict()["online"]
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert any(name.endswith(".left") for name in first)


def test_singular_value_is_not_rounded_to_bf16() -> None:
    network = make_network(precision="bf16")
    layer = spectral_layers(network)[0]
    with network.torso_precision(frames(1)):
        assert torch.equal(
            layer.normalized_weight(), make_network().torso.sections[0][2].first.normalized_weight()
        )


def test_saved_learner_has_the_layout_of_a_new_one() -> None:
    saved = make_learner()
    saved.update(make_batch())
    check_learner(Path("agent.pt"), saved.state_dict(), make_learner().state_dict())
