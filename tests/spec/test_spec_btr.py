"""The values of BTR's specs, and the number of weights of its network."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from atari_dqn.machine.learner_items import network_shape
from atari_dqn.machine.sizes import network_parameters
from atari_dqn.schedule import LinearSchedule, SwitchedOff
from atari_dqn.spec.errors import SpecError
from atari_dqn.spec.exploration import exploration_of
from atari_dqn.spec.loader import load_spec
from atari_dqn.spec.schema import Spec

RUNS = Path(__file__).parents[2] / "runs"


def btr(name: str = "btr", *overrides: str) -> Spec:
    return load_spec(RUNS / f"{name}.toml", overrides).spec


def test_btr_has_its_papers_numbers() -> None:
    # Clark et al. (2024), appendix D
    spec = btr()
    assert (spec.learner.discount, spec.toggles.n_step, spec.learner.batch_size) == (0.997, 3, 256)
    assert (spec.env.num_envs, spec.learner.update_period_steps) == (64, 64)
    assert (spec.learner.target_period_updates, spec.learner.max_grad_norm) == (500, 10.0)
    assert (spec.replay.capacity_steps, spec.replay.prefill_steps) == (2**20, 200_000)
    assert (spec.optimizer.kind, spec.optimizer.learning_rate, spec.optimizer.epsilon) == (
        "adam", 1e-4, 0.005 / 256,
    )  # fmt: skip
    assert (spec.toggles.munchausen, spec.learner.munchausen_scale, spec.learner.munchausen_lowest) == (
        True, 0.9, -1.0,
    )  # fmt: skip


def test_btr_does_not_anneal_the_exponent_of_its_weights() -> None:
    replay = btr().replay
    assert replay.alpha == replay.beta_start == replay.beta_end == 0.2


@pytest.mark.parametrize(("name", "network"), [("btr", "online"), ("btr_ln", "online"), ("m_iqn", "target")])
def test_bonus_of_munchausen_is_of_the_network_of_the_published_code(name: str, network: str) -> None:
    assert btr(name).learner.munchausen_network == network


def test_network_of_btr_has_as_many_weights_as_the_paper_says() -> None:
    # 2.91 million; the σ of noisy layers, one for each weight, are not counted there
    shape = replace(network_shape(btr(), 18), noisy=False)
    assert network_parameters(shape) == 2_908_851


def test_btr_with_layer_normalisation_differs_in_that_alone() -> None:
    assert btr("btr", "network.layer_norm=true") == btr("btr_ln")


def test_every_line_of_btr_says_where_its_value_comes_from() -> None:
    lines = [line for line in (RUNS / "btr.toml").read_text().splitlines() if re.match(r"\w+ = ", line)]
    assert [line for line in lines if "#" not in line] == [
        'track = "D"', "seed = 1", 'kind = "linear"', 'kind = "transitions"', 'memory = "none"',
    ]  # fmt: skip


def test_epsilon_of_btr_is_switched_off_after_100_million_frames() -> None:
    exploration = exploration_of(btr())
    assert isinstance(exploration, SwitchedOff)
    frames = (0, 4_000_000, 8_000_000, 99_999_999, 100_000_000)
    assert [exploration.at(at) for at in frames] == pytest.approx([1.0, 0.505, 0.01, 0.01, 0.0])


def test_epsilon_that_is_never_switched_off_stays_at_its_end() -> None:
    exploration = exploration_of(btr("btr", "exploration.epsilon_off_frames=0"))
    assert isinstance(exploration, LinearSchedule)
    assert exploration.at(2**40) == 0.01


def test_layer_normalisation_with_memory_is_refused(write_spec) -> None:
    text = '[network]\nkind = "impala"\nmemory = "lstm"\nlayer_norm = true\n'
    with pytest.raises(SpecError, match=r'network\.layer_norm: found true with network\.memory = "lstm"'):
        load_spec(write_spec(text))


def test_average_of_singular_vectors_is_refused() -> None:
    with pytest.raises(SpecError, match="singular vectors are copied to the target network"):
        btr("btr", "learner.target_rate=0.01", "learner.target_period_updates=1")


def test_key_of_several_distributions_names_them_all(write_spec) -> None:
    with pytest.raises(SpecError, match=r'belongs to toggles\.distribution = "c51" or "hl_gauss"'):
        load_spec(write_spec("[distribution]\nnum_atoms = 51\n"))
