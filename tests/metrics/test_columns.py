"""The units of metrics."""

import pytest

from atari_dqn.spec.keys import KEYS
from atari_dqn.telemetry.columns import TABLES


@pytest.mark.parametrize(
    ("table", "name"),
    [
        ("update_log", "mean_q"),
        ("update_log", "max_q"),
        ("update_log", "mean_abs_td_error"),
        ("prediction_log", "action_gap"),
    ],
)
def test_unit_of_q_values_names_the_keys_that_decide_it(table: str, name: str) -> None:
    (unit,) = (column.unit for column in TABLES[table] if column.name == name)
    named = {key for key in KEYS if key in unit}
    assert named == {"learner.max_abs_reward", "learner.value_rescaling"}
