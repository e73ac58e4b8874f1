"""A torch generator's state, on the kind of device it was saved on and on another."""

import copy

import pytest
import torch
from tiny import begun, ticks_of, tiny_spec

from atari_dqn.rng import restore_generator


def draws(generator: torch.Generator) -> list[float]:
    return torch.rand(3, generator=generator).tolist()


def restored(state: torch.Tensor) -> torch.Generator:
    generator = torch.Generator().manual_seed(9)
    restore_generator(generator, state)
    return generator


def test_state_of_the_same_kind_draws_on_where_it_was_saved() -> None:
    saved = torch.Generator().manual_seed(1)
    draws(saved)
    state = saved.get_state()
    assert draws(restored(state)) == draws(saved)


def test_state_of_another_kind_decides_what_is_drawn() -> None:
    cuda_state, another = torch.arange(16, dtype=torch.uint8), torch.ones(16, dtype=torch.uint8)
    assert draws(restored(cuda_state)) == draws(restored(cuda_state)) != draws(restored(another))


def test_training_goes_on_from_streams_of_another_kind_of_device() -> None:
    spec = tiny_spec("toggles.noisy=true")
    with begun(spec) as saved, begun(spec) as loaded:
        ticks_of(saved, 100)
        state = copy.deepcopy(saved.state_dict())
        for part in (state["policy"], state["learner"], state["replay"]["sampler"]):
            part["generator"] = torch.arange(16, dtype=torch.uint8)
        loaded.load_state_dict(state)
        assert len(ticks_of(loaded, 20)) == 20


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an accelerator")
def test_state_of_a_gpus_stream_draws_on_there_where_it_was_saved() -> None:
    saved = torch.Generator(device="cuda").manual_seed(1)
    torch.rand(3, generator=saved, device="cuda")
    state, other = saved.get_state(), torch.Generator(device="cuda")
    restore_generator(other, state)
    expected = torch.rand(3, generator=saved, device="cuda")
    assert torch.equal(torch.rand(3, generator=other, device="cuda"), expected)
