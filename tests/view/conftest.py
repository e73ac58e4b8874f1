from collections.abc import Callable
from typing import Any

import pytest

from atari_dqn.telemetry.columns import TABLES, column_names
from atari_dqn.telemetry.events import Row

MakeRow = Callable[..., Row]
_WORDS = {"end_reason": "game_over", "eval_type": "light", "protocol": "0a1b2c3d"}


@pytest.fixture
def row() -> MakeRow:
    """Makes a row of a table: 0 in every column that is not given."""

    def make(table: str, **values: Any) -> Row:
        assert values.keys() <= set(column_names(table)), f"no column of {table}"
        return Row(
            table=table, values={column.name: _WORDS.get(column.name, 0) for column in TABLES[table]} | values
        )

    return make


@pytest.fixture
def period(row: MakeRow) -> Callable[..., list[Row]]:
    """Makes the two rows that end a period in which the run learned."""

    def make(step: int, *, elapsed_seconds: float, fps: float = 1012.0, **values: Any) -> list[Row]:
        place = {"step": step, "env_frames": 4 * step}
        throughput = {"elapsed_seconds": elapsed_seconds, "frames_per_second": fps, "learn_share": 0.75}
        return [
            row("update_log", **place, updates=step // 4, **values),
            row("throughput_log", **place, updates_per_second=253.0, **throughput),
        ]

    return make
