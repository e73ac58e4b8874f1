"""Networks with memory on the back end: their convolutions are accelerated, the rest is PyTorch's."""

import torch
from tiny import CPU, MEMORY, begun, ticks_of, tiny_spec
from torch import nn

from atari_dqn.assembly.acceleration import Plain, make_backend
from atari_dqn.assembly.parts import build_learner


def test_update_of_a_network_with_memory_equals_the_plain_one() -> None:
    spec = tiny_spec(*MEMORY, "toggles.dueling=true", "toggles.double=true")
    with begun(spec) as training:
        ticks_of(training, 90)
        batch, info = training.recent.gather(), training.envs.info
    updates, networks = [], []
    for backend in (make_backend(CPU), Plain()):
        learner = build_learner(spec, info, CPU, backend)
        updates.append(learner.update(batch))
        networks.append(learner.online.state_dict())
    torch.testing.assert_close(updates[0].priorities, updates[1].priorities, atol=1e-4, rtol=1e-4)
    for name, weight in networks[0].items():
        torch.testing.assert_close(weight, networks[1][name], atol=1e-3, rtol=1e-3)


def test_back_end_says_that_no_kernel_computes_the_whole_network() -> None:
    spec = tiny_spec(*MEMORY)
    backend = make_backend(CPU)
    with begun(spec) as training:
        network = build_learner(spec, training.envs.info, CPU, backend).online
    assert type(network.memory.layer) is nn.LSTM
    assert any("no kernel computes a whole RecurrentQNetwork" in choice for choice in backend.choices())
