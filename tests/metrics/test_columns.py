"""The units of metrics."""

from collections.abc import Callable
from pathlib import Path

import polars as pl
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


UNITS = {
    "_per_second": "/s", "_seconds": "seconds", "_frames": "emulator frames", "_steps": "agent steps",
    "_share": "share",
}  # fmt: skip
"""The beginning or the end of the unit of a column, by the end of its name."""


@pytest.mark.parametrize("table", TABLES)
def test_unit_is_the_one_in_the_name_of_the_column(table: str) -> None:
    units = [
        (column.unit, unit)
        for column in TABLES[table]
        for end, unit in UNITS.items()
        if column.name.endswith(end)
    ]
    assert [found for found, unit in units if not (found.startswith(unit) or found.endswith(unit))] == []
    assert len(units) > 0


BOUNDED = {"share", "share of stored rows", "share of training time", "probability", "importance weight"}


@pytest.mark.parametrize("table", [name for name in TABLES if name not in ("memory_log", "eval_log")])
def test_shares_and_probabilities_that_a_run_writes_are_at_most_one(
    table: str, tiny_run: Callable[..., Path]
) -> None:
    rows = pl.read_csv(tiny_run() / f"{table}.csv", infer_schema_length=None, glob=False)
    written = {column.name: rows[column.name] for column in TABLES[table] if column.unit in BOUNDED}
    assert written
    assert {
        name for name, values in written.items() for value in values.drop_nulls() if not 0 <= value <= 1
    } == set()
