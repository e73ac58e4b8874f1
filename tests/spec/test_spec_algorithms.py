"""Combinations of toggles that papers define, and the errors of those that none defines."""

import pytest

from atari_dqn.spec.errors import SpecError
from atari_dqn.spec.loader import load_spec

RAINBOW = ("double=true", "dueling=true", "prioritized=true", "n_step=3", "noisy=true", 'distribution="c51"')
DEFINED = {
    "rainbow": RAINBOW,
    "qr_dqn with n-step and prioritized, Dopamine": ('distribution="qr_dqn"', "n_step=3", "prioritized=true"),
    "rainbow with iqn, Toromanoff et al. (2019)": (*RAINBOW[:-1], 'distribution="iqn"'),
    "m_dqn": ("munchausen=true",),
    "hl_gauss, whose target is any scalar one": (*RAINBOW[:-1], 'distribution="hl_gauss"'),
    "m_iqn": ("munchausen=true", 'distribution="iqn"'),
    "m_iqn, n-step, dueling, noisy, Clark et al. (2024)": (
        "munchausen=true", 'distribution="iqn"', "n_step=3", "dueling=true", "noisy=true", "prioritized=true",
    ),
}  # fmt: skip
UNDEFINED = {
    ("munchausen=true", 'distribution="hl_gauss"'): (
        "toggles.munchausen",
        'toggles.distribution = "hl_gauss"',
    ),
    ("munchausen=true", "double=true"): ("toggles.munchausen", "toggles.double = true"),
    ("munchausen=true", 'distribution="c51"'): ("toggles.munchausen", 'toggles.distribution = "c51"'),
    ("munchausen=true", 'distribution="qr_dqn"'): ("toggles.munchausen", 'toggles.distribution = "qr_dqn"'),
    ('distribution="qr_dqn"', "double=true"): ("toggles.distribution", "toggles.double = true"),
    ('distribution="qr_dqn"', "dueling=true"): ("toggles.distribution", "toggles.dueling = true"),
    ('distribution="qr_dqn"', "noisy=true"): ("toggles.distribution", "toggles.noisy = true"),
}


def toggles(*lines: str) -> str:
    return "\n".join(["[toggles]", *lines, ""])


@pytest.mark.parametrize("lines", DEFINED.values(), ids=DEFINED.keys())
def test_combination_that_a_paper_defines_is_accepted(write_spec, lines):
    assert load_spec(write_spec(toggles(*lines))).track_label == "A"


@pytest.mark.parametrize(("lines", "named"), UNDEFINED.items())
def test_combination_that_no_paper_defines_is_refused_with_both_keys_named(write_spec, lines, named):
    with pytest.raises(SpecError) as caught:
        load_spec(write_spec(toggles(*lines)))
    assert len(caught.value.faults) == 1
    assert all(key in str(caught.value) for key in named)


def test_noisy_layers_set_epsilon_to_zero(write_spec):
    spec = load_spec(write_spec(toggles("noisy=true"))).spec
    assert (spec.exploration.epsilon_start, spec.exploration.epsilon_end, spec.evaluation.epsilon) == (
        0,
        0,
        0,
    )


def test_noisy_layers_with_epsilon_are_refused(write_spec):
    with pytest.raises(SpecError, match=r"toggles\.noisy.*exploration\.epsilon_start = 1"):
        load_spec(write_spec(toggles("noisy=true") + "[exploration]\nepsilon_start = 1.0\n"))


SUPPORTS = {"wider than any return": (-10, 200), "below one reward": (-0.5, 0.5), "backwards": (10, -10)}


@pytest.mark.fault("W04")
@pytest.mark.parametrize(("low", "high"), SUPPORTS.values(), ids=SUPPORTS.keys())
def test_support_that_does_not_suit_the_clipped_return_is_refused(write_spec, low, high):
    support = f"[distribution]\nv_min = {low}\nv_max = {high}\n"
    with pytest.raises(SpecError, match=r"distribution\.v_m.*v_m"):
        load_spec(write_spec(toggles('distribution="c51"') + support))


@pytest.mark.parametrize(("discount", "widest"), [(0.99, 100), (0.95, 20), (0.999, 1000)])
def test_support_as_wide_as_the_largest_return_is_valid(write_spec, discount: float, widest: int):
    more = f"[distribution]\nv_min = -{widest}\nv_max = {widest}\n[learner]\ndiscount = {discount}\n"
    assert load_spec(write_spec(toggles('distribution="c51"') + more)).spec.distribution.v_max == widest


def test_support_of_unclipped_rewards_may_have_any_width(write_spec):
    more = "[distribution]\nv_min = -5000\nv_max = 5000\n[learner]\nmax_abs_reward = inf\n"
    assert load_spec(write_spec(toggles('distribution="c51"') + more)).spec.distribution.v_max == 5000


def test_loss_key_does_not_apply_to_a_distribution(write_spec):
    with pytest.raises(SpecError, match=r'learner\.loss: belongs to toggles\.distribution = "none"'):
        load_spec(write_spec(toggles('distribution="c51"') + '[learner]\nloss = "mse"\n'))
