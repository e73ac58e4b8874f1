"""A weight that is NaN reaches the action values, whatever computes the layers: the gates look at those."""

import pytest
import torch
from parts import frames

from atari_dqn.agent.heads import LinearHead
from atari_dqn.agent.impala import ImpalaTorso
from atari_dqn.agent.network import QNetwork
from atari_dqn.agent.torsos import DataEfficientTorso, DopamineTorso, NatureTorso

TORSOS = (NatureTorso, DataEfficientTorso, DopamineTorso, ImpalaTorso)


def make_network(torso_type: type, precision: str) -> QNetwork:
    torch.manual_seed(0)
    torso = torso_type(stack=4, frame_shape=(36, 36))
    return QNetwork(torso, LinearHead(torso.num_features, 3), precision=precision)


def set_first_to_nan(parameter: torch.Tensor) -> None:
    with torch.no_grad():
        parameter[(0,) * parameter.ndim] = torch.nan


@pytest.mark.fault("H08")
@pytest.mark.parametrize("has_gradients", [True, False])
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("torso_type", TORSOS)
def test_nan_in_any_weight_or_bias_makes_action_values_nan(
    torso_type: type, precision: str, has_gradients: bool
) -> None:
    finite_at_nan = []
    for name, _ in make_network(torso_type, precision).named_parameters():
        network = make_network(torso_type, precision)
        set_first_to_nan(network.get_parameter(name))
        with torch.set_grad_enabled(has_gradients):
            q = network(frames(1))
        if not q.isnan().any():
            finite_at_nan.append(name)
    assert finite_at_nan == []
