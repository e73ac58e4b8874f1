"""The largest |Q| that rewards allow, above which the gate `q_bound` warns."""

import math

import pytest
from tiny import MEMORY, tiny_spec

from atari_dqn.assembly.largest_q import largest_q

DISCOUNT = "learner.discount=0.96"


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        ((DISCOUNT, "learner.max_abs_reward=2"), 50.0),
        ((DISCOUNT, "learner.max_abs_reward=inf"), math.inf),
        (("learner.discount=1", "learner.max_abs_reward=2"), math.inf),
        (
            (*MEMORY, "learner.value_rescaling=true", DISCOUNT, "learner.max_abs_reward=1.92"),
            6.048,
        ),  # h(48)
    ],
)
def test_largest_q_is_the_largest_return_on_the_networks_scale(
    overrides: tuple[str, ...], expected: float
) -> None:
    assert largest_q(tiny_spec(*overrides)) == pytest.approx(expected)
