"""Networks with memory: acting equals unrolling, initial weights, and where gradients flow."""

import math

import pytest
import torch
from sequences import ACTIONS, make_recurrent_network, make_sequences
from torch import nn

from atari_dqn.agent.memory import stacks_of
from atari_dqn.agent.unroll import UnrollMemory
from atari_dqn.minibatch import SequenceBatch

KINDS = pytest.mark.parametrize("kind", ["lstm", "gru"])


def whole(network, batch: SequenceBatch) -> tuple[torch.Tensor, torch.Tensor]:
    with torch.no_grad():
        return network.unroll(batch.frames, batch.last_action, batch.last_reward, batch.state)


@KINDS
@pytest.mark.parametrize("stack", [1, 3])
@pytest.mark.parametrize("has_inputs", [True, False])
@pytest.mark.parametrize("hidden", [0, 16])
def test_acting_step_by_step_equals_one_unroll(kind: str, stack: int, has_inputs: bool, hidden: int) -> None:
    network = make_recurrent_network(kind, stack=stack, has_inputs=has_inputs, hidden=hidden)
    batch = make_sequences(stack=stack, width=network.memory.width)
    q, last_state = whole(network, batch)
    state, played = batch.state, []
    with torch.no_grad():
        for step in range(q.shape[1]):
            frames = batch.frames[:, step : step + stack]
            now, state = network.unroll(
                frames, batch.last_action[:, step, None], batch.last_reward[:, step, None], state
            )
            played.append(now)
    torch.testing.assert_close(torch.cat(played, dim=1), q, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(state, last_state, atol=1e-5, rtol=1e-5)


@KINDS
def test_state_changes_the_values(kind: str) -> None:
    network = make_recurrent_network(kind)
    batch = make_sequences(width=network.memory.width)
    other = whole(network, batch)[0]
    zeroed = network.unroll(batch.frames, batch.last_action, batch.last_reward, batch.state * 0)[0]
    assert not torch.equal(zeroed, other)


@pytest.mark.parametrize("column", ["last_action", "last_reward"])
@pytest.mark.parametrize("has_inputs", [True, False])
def test_last_action_and_reward_are_inputs_if_the_network_has_them(column: str, has_inputs: bool) -> None:
    network = make_recurrent_network("lstm", has_inputs=has_inputs)
    batch = make_sequences(width=network.memory.width)
    changed = make_sequences(width=network.memory.width, **{column: getattr(batch, column) * 0 + 1})
    assert torch.equal(whole(network, batch)[0], whole(network, changed)[0]) == (not has_inputs)


def test_no_last_action_is_a_vector_of_zeros() -> None:
    network = make_recurrent_network("lstm")
    assert network._one_hot(torch.tensor([[-1, 0, 2]])).tolist() == [[[0, 0, 0], [1, 0, 0], [0, 0, 1]]]


def test_stacks_of_consecutive_frames_overlap() -> None:
    frames = torch.arange(5, dtype=torch.uint8).view(1, 5, 1, 1)
    assert stacks_of(frames, 3).flatten(1).tolist() == [[0, 1, 2], [1, 2, 3], [2, 3, 4]]


@KINDS
def test_no_gradient_flows_through_the_burn_in(kind: str) -> None:
    network = make_recurrent_network(kind)
    batch = make_sequences(width=network.memory.width, burn_in=4)
    state = UnrollMemory().burned_in(network, batch)
    assert not state.requires_grad
    assert (state != 0).any(dim=1).tolist() == (~batch.is_first).tolist()


@KINDS
def test_gradient_at_the_burn_ins_end_is_that_of_an_unroll_from_there(kind: str) -> None:
    network = make_recurrent_network(kind)
    batch = make_sequences(width=network.memory.width, burn_in=4)
    state = UnrollMemory().burned_in(network, batch)
    weights = list(network.parameters())
    from_here = network.unroll(batch.frames[:, 4:], batch.last_action[:, 4:], batch.last_reward[:, 4:], state)
    gradients = [
        torch.autograd.grad(q.square().sum(), weights)
        for q in (UnrollMemory().q_values(network, batch), from_here[0])
    ]
    assert all(torch.equal(one, other) for one, other in zip(*gradients, strict=True))


def test_each_frame_after_the_burn_in_has_its_own_stack_and_inputs() -> None:
    network = make_recurrent_network(stack=3)
    batch = make_sequences(width=network.memory.width, steps=2, burn_in=2, stack=3)
    state, q = batch.state, []
    with torch.no_grad():
        for frame in range(5):
            if frame == 2:  # the first one after the burn-in
                state = state.masked_fill(batch.is_first[:, None], 0.0)
            stack, one = batch.frames[:, frame : frame + 3], slice(frame, frame + 1)
            action, reward = batch.last_action[:, one], batch.last_reward[:, one]
            of_frame, state = network.unroll(stack, action, reward, state)
            q.append(of_frame[:, 0])
        found = UnrollMemory().q_values(network, batch)
    torch.testing.assert_close(found, torch.stack(q[2:], dim=1), atol=1e-5, rtol=1e-5)


@pytest.mark.fault("W05")
@KINDS
def test_gradient_reaches_every_weight(kind: str) -> None:
    network = make_recurrent_network(kind)
    UnrollMemory().q_values(network, make_sequences(width=network.memory.width)).square().sum().backward()
    assert all((weight.grad != 0).any() for weight in network.parameters())


@pytest.mark.fault("P08")
@pytest.mark.parametrize(("kind", "gates"), [("lstm", 4), ("gru", 3)])
def test_weights_of_each_gate_have_the_deviation_of_sonnet_within_two_sigmas(kind: str, gates: int) -> None:
    network = make_recurrent_network(kind, units=64)
    layer = network.memory.layer
    sigma = 1 / math.sqrt(layer.input_size + layer.hidden_size)
    for weight in (layer.weight_ih_l0, layer.weight_hh_l0):
        for gate in weight.detach().chunk(gates):
            assert gate.abs().max() <= 2 * sigma
            # a normal distribution truncated at two deviations has 0.8796 of the deviation
            assert gate.std().item() == pytest.approx(0.8796 * sigma, rel=0.05)


def test_only_the_forget_gate_of_an_lstm_has_a_bias_at_first() -> None:
    layer = make_recurrent_network("lstm", units=2).memory.layer
    assert layer.bias_ih_l0.tolist() == [0, 0, 1, 1, 0, 0, 0, 0]
    assert layer.bias_hh_l0.tolist() == [0] * 8


def test_biases_of_a_gru_are_zero_at_first() -> None:
    layer = make_recurrent_network("gru").memory.layer
    assert not layer.bias_ih_l0.any()
    assert not layer.bias_hh_l0.any()


def test_weights_are_those_of_the_stream_and_of_no_global_one() -> None:
    torch.manual_seed(1)
    first = make_recurrent_network("lstm").state_dict()
    torch.manual_seed(2)
    again = make_recurrent_network("lstm").state_dict()
    assert all(torch.equal(first[name], again[name]) for name in first)


def test_network_refuses_frames_without_a_state() -> None:
    network = make_recurrent_network("lstm")
    with pytest.raises(AssertionError, match="without a recurrent state"):
        network(make_sequences().frames[:, :1])


def test_hidden_layer_of_dqn_is_not_kept_next_to_the_memory() -> None:
    network = make_recurrent_network("lstm")
    assert isinstance(network.torso.hidden, nn.Identity)
    assert network.memory.layer.input_size == network.torso.num_encoded + 1 + ACTIONS
