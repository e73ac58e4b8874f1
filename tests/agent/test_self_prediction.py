"""Self-prediction equals the equations of Schwarzer et al. (2021), written once more in double precision."""

import math
from dataclasses import fields

import pytest
import torch
from parts import frames, make_batch, make_network, stream
from torch import Tensor, nn
from torch.nn import functional as F

from atari_dqn.agent import rules
from atari_dqn.agent.augmentation import RandomShifts
from atari_dqn.agent.distributions import CategoricalValue
from atari_dqn.agent.heads import SharedDuelingHead
from atari_dqn.agent.impala import ImpalaTorso
from atari_dqn.agent.init import initialize
from atari_dqn.agent.losses import ScalarLoss, TDLoss
from atari_dqn.agent.self_prediction import (
    FutureShifts,
    SelfPredictionLoss,
    SelfPredictiveNetwork,
    cosine_loss,
    renormalized,
)
from atari_dqn.agent.targets import dqn_target
from atari_dqn.agent.torsos import ConvolutionalTorso, DopamineTorso
from atari_dqn.minibatch import FutureBatch

STEPS, SIZE, ACTIONS, WEIGHT = 3, 4, 3, 2.0
SIDE = 44
"""After the convolutions of `nature` two by two pixels are left, so that a latent has a shape."""


def make_predictive(seed: int, precision: str = "fp32") -> SelfPredictiveNetwork:
    plain = make_network(side=SIDE)
    network = SelfPredictiveNetwork(
        plain.torso, plain.head, plain.value, num_actions=ACTIONS, precision=precision
    )
    initialize(network, init="he_uniform", generator=stream(seed=seed))
    return network


def test_prediction_which_has_no_relu_begins_with_a_linear_gain() -> None:
    network = make_predictive(seed=1)
    hidden, prediction = network.torso.hidden.weight, network.prediction.weight
    assert (hidden.shape[1], prediction.shape[1]) == (256, 512)
    assert 0.95 * (6 / 256) ** 0.5 < hidden.abs().max() <= (6 / 256) ** 0.5
    assert 0.95 * (3 / 512) ** 0.5 < prediction.abs().max() <= (3 / 512) ** 0.5


def make_future_batch(follows: Tensor | None = None) -> FutureBatch:
    plain = make_batch(SIZE, s_tm1=frames(SIZE, seed=1, side=SIDE), s_t=frames(SIZE, seed=2, side=SIDE))
    columns = {field.name: getattr(plain, field.name) for field in fields(plain)}
    columns["weight"] = torch.tensor([1.0, 0.5, 0.25, 2.0])
    return FutureBatch(
        **columns,
        actions=torch.tensor([[0, 1, 2], [1, 1, 0], [2, 0, 1], [0, 2, 2]]),
        future=frames(SIZE * STEPS, seed=3, side=SIDE).view(SIZE, STEPS, 4, SIDE, SIDE),
        follows=torch.ones(SIZE, STEPS, dtype=torch.bool) if follows is None else follows,
    )


def make_loss(weight: float = WEIGHT) -> SelfPredictionLoss:
    td_loss = TDLoss(target_rule=dqn_target, distribution_loss=ScalarLoss(rules.huber))
    return SelfPredictionLoss(td_loss=td_loss, weight=weight)


def auxiliary(online: SelfPredictiveNetwork, target: SelfPredictiveNetwork, batch: FutureBatch) -> Tensor:
    """Return the auxiliary part of each sample's loss."""
    with_it, without = (make_loss(weight)(batch, online, target, stream()).loss for weight in (WEIGHT, 0.0))
    return (with_it - without) / batch.weight


def scaled_to_unit(x: Tensor) -> Tensor:
    flat = x.flatten()
    return ((flat - flat.min()) / (flat.max() - flat.min() + 1e-5)).view_as(x)


def reference(online, target, batch: FutureBatch) -> list[float]:
    """Compute 2 Σₖ (1 − cos) for each sample by itself, in double precision, from the weights alone."""
    w, w_target = (
        {key: value.double() for key, value in each.state_dict().items()} for each in (online, target)
    )

    def latent(weights: dict[str, Tensor], stack: Tensor) -> Tensor:
        x = stack.double()[None] / 255
        for number, stride in enumerate((4, 2, 1)):
            name = f"torso.convolutions.{number}"
            x = F.conv2d(x, weights[f"{name}.weight"], weights[f"{name}.bias"], stride=stride).relu()
        return scaled_to_unit(x)

    def project(weights: dict[str, Tensor], z: Tensor) -> Tensor:
        return weights["torso.hidden.weight"] @ z.flatten() + weights["torso.hidden.bias"]

    losses = []
    for row in range(SIZE):
        z, loss = latent(w, batch.s_tm1[row]), 0.0
        for k in range(STEPS):
            plane = torch.zeros(1, ACTIONS, *z.shape[2:], dtype=torch.float64)
            plane[0, batch.actions[row, k]] = 1
            x = torch.cat([z, plane], dim=1)
            x = F.conv2d(x, w["transition.first.weight"], w["transition.first.bias"], padding=1).relu()
            x = F.conv2d(x, w["transition.second.weight"], w["transition.second.bias"], padding=1).relu()
            z = scaled_to_unit(x)
            y_hat = w["prediction.weight"] @ project(w, z) + w["prediction.bias"]
            y = project(w_target, latent(w_target, batch.future[row, k]))
            cosine = (y_hat @ y / (y_hat.norm() * y.norm())).item()
            loss += (1 - cosine) * float(batch.follows[row, k])
        losses.append(WEIGHT * loss)
    return losses


def test_auxiliary_loss_equals_a_reference_in_double_precision() -> None:
    online, target, batch = make_predictive(1), make_predictive(2), make_future_batch()
    found = auxiliary(online, target, batch).tolist()
    assert found == pytest.approx(reference(online, target, batch), abs=1e-5)
    assert min(found) > 0.1


def test_steps_after_the_end_of_the_episode_are_not_learned_from() -> None:
    follows = torch.tensor([[True, True, True], [True, False, False], [True, True, False], [False] * 3])
    online, target, batch = make_predictive(1), make_predictive(2), make_future_batch(follows)
    found = auxiliary(online, target, batch).tolist()
    assert found == pytest.approx(reference(online, target, batch), abs=1e-5)
    assert found[3] == 0


@pytest.mark.fault("W01")
@pytest.mark.parametrize("step", range(STEPS))
def test_each_predicted_step_gives_a_gradient_to_each_part(step: int) -> None:
    online, target = make_predictive(1), make_predictive(2)
    follows = torch.zeros(SIZE, STEPS, dtype=torch.bool)
    follows[:, step] = True
    auxiliary(online, target, make_future_batch(follows)).sum().backward()
    without = {
        name for name, weight in online.named_parameters() if weight.grad is None or not weight.grad.any()
    }
    assert without == {"head.output.weight", "head.output.bias"}


@pytest.mark.fault("W01")
def test_prediction_of_a_step_depends_on_the_actions_up_to_it_alone() -> None:
    online, batch = make_predictive(1), make_future_batch()
    actions = batch.actions.clone()
    actions[:, 1] = (actions[:, 1] + 1) % ACTIONS
    before, after = (online.predicted(batch.s_tm1, each) for each in (batch.actions, actions))
    changed = [(before[:, k] != after[:, k]).any().item() for k in range(STEPS)]
    assert changed == [False, True, True]


def test_a_loss_encodes_each_state_once(monkeypatch: pytest.MonkeyPatch) -> None:
    encoded: list[int] = []
    encode = ConvolutionalTorso.encode

    def noted(self: ConvolutionalTorso, images: Tensor) -> Tensor:
        encoded.append(len(images))
        return encode(self, images)

    monkeypatch.setattr(ConvolutionalTorso, "encode", noted)
    make_loss()(make_future_batch(), make_predictive(1), make_predictive(2), stream())
    assert sorted(encoded) == [
        SIZE,
        SIZE,
        SIZE * STEPS,
    ]  # s_tm1, s_t by the target network, the states that follow


def test_latents_are_kept_inside_the_context_alone() -> None:
    network, images = make_predictive(1), frames(SIZE, side=SIDE)
    with network.encoding_once(images):
        known = network.latent(images)
        assert network.latent(images) is known
        assert torch.equal(network.latent(images.clone()), known)
    assert network.latent(images) is not known
    with pytest.raises(KeyboardInterrupt), network.encoding_once(images):
        raise KeyboardInterrupt
    assert network.latent(images) is not known


@pytest.mark.fault("W09")
def test_no_gradient_reaches_the_target_network() -> None:
    online, target = make_predictive(1), make_predictive(2)
    auxiliary(online, target, make_future_batch()).sum().backward()
    assert all(weight.grad is None for weight in target.parameters())


def test_loss_of_a_sample_is_multiplied_by_its_importance_weight() -> None:
    online, target, batch = make_predictive(1), make_predictive(2), make_future_batch()
    losses = [make_loss(weight)(batch, online, target, stream()).loss for weight in (WEIGHT, 0.0)]
    ratio = (losses[0] - losses[1]) / torch.tensor(reference(online, target, batch))
    torch.testing.assert_close(ratio, torch.tensor([1.0, 0.5, 0.25, 2.0]), rtol=0, atol=1e-4)


def test_priorities_are_those_of_the_td_loss() -> None:
    online, target, batch = make_predictive(1), make_predictive(2), make_future_batch()
    found, plain = (make_loss(weight)(batch, online, target, stream()) for weight in (WEIGHT, 0.0))
    assert torch.equal(found.priorities, plain.priorities)


def test_cosine_of_parallel_and_of_orthogonal_vectors() -> None:
    predicted = torch.tensor([[[3.0, 0.0], [0.0, 2.0], [-1.0, 0.0]]])
    target = torch.tensor([[[1.0, 0.0], [5.0, 0.0], [7.0, 0.0]]])
    assert cosine_loss(predicted, target, torch.tensor([[True, True, True]])).tolist() == [0 + 1 + 2]
    assert cosine_loss(predicted, target, torch.tensor([[True, True, False]])).tolist() == [1]


def test_latents_are_renormalized_row_by_row() -> None:
    z = torch.tensor([[0.0, 1.0, 4.0], [2.0, 2.0, 2.0]])
    expected = torch.tensor([[0.0, 1 / 4.00001, 4 / 4.00001], [0.0, 0.0, 0.0]])
    torch.testing.assert_close(renormalized(z), expected)


@pytest.mark.parametrize(
    ("torso_type", "width", "channels", "pixels", "hidden", "convolutions"),
    [
        (DopamineTorso, {}, 64, 11**2, 512, 8_224 + 32_832 + 36_928),
        # a section of c channels after b: 9 b c + c, and four convolutions of 9 c² + c
        (
            ImpalaTorso, {"width": 4}, 128, 11**2, 2_048,
            sum(9 * b * c + c + 4 * (9 * c * c + c) for b, c in ((4, 64), (64, 128), (128, 128))),
        ),
    ],
    ids=["SPR", "BBF"],
)  # fmt: skip
def test_parameters_are_counted_as_in_the_papers_formulas(
    torso_type, width, channels: int, pixels: int, hidden: int, convolutions: int
) -> None:
    actions, atoms = 6, 51
    with torch.device("meta"):
        torso = torso_type(stack=4, frame_shape=(84, 84), hidden_units=hidden, **width)
        head = SharedDuelingHead(hidden, actions, atoms)
        value = CategoricalValue(v_min=-10, v_max=10, num_atoms=atoms)
        network = SelfPredictiveNetwork(torso, head, value, num_actions=actions)
    transition = channels * (9 * (channels + actions) + 1) + channels * (9 * channels + 1)
    projection, prediction = hidden * (channels * pixels + 1), hidden * (hidden + 1)
    heads = (actions + 1) * atoms * (hidden + 1)
    found = sum(weight.numel() for weight in network.parameters())
    assert found == convolutions + transition + projection + prediction + heads


def test_every_state_is_shifted_in_a_way_of_its_own() -> None:
    one = frames(1, side=SIDE)
    plain = make_future_batch()
    same = one.expand(SIZE, -1, -1, -1)
    columns = {field.name: getattr(plain, field.name) for field in fields(plain)}
    future = same[:, None].expand(-1, STEPS, -1, -1, -1)
    batch = FutureBatch(**columns | {"s_tm1": same, "s_t": same, "future": future})
    shifts = FutureShifts(shift_pixels=4, intensity_scale=0.05)
    found = shifts(batch, stream())
    every = torch.cat([found.s_tm1, found.s_t, found.future.flatten(0, 1)])
    assert len({tuple(stack.flatten().tolist()) for stack in every}) == SIZE * (2 + STEPS)
    assert isinstance(shifts, RandomShifts)


def test_hidden_layer_is_the_projection_before_its_relu() -> None:
    network, stacks = make_predictive(1), frames(2, side=SIDE)
    projected = network.projected(network.latent(stacks))
    assert torch.equal(network.features(stacks), projected.relu())
    assert (projected < 0).any()
    assert isinstance(network.torso.hidden, nn.Linear)
    assert math.isfinite(network(stacks).sum().item())


def test_hidden_layer_of_a_network_in_bf16_computes_in_bf16_and_hands_on_fp32() -> None:
    network, found = make_predictive(1, precision="bf16"), []
    network.torso.hidden.register_forward_hook(lambda *args: found.append(args[2].dtype))
    found.append(network.features(frames(2, side=SIDE)).dtype)
    assert found == [torch.bfloat16, torch.float32]
