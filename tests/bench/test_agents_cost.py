"""The table of what each agent costs: a row says what was measured, and the page has the rows of its file."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
from agents_cost import AGENTS, RUNS, row, significant, table

ROOT = Path(__file__).parents[2]
FOUND = {
    "update_milliseconds": {"accelerated": 733.21, "plain": 1854.4},
    "plain_over_accelerated": 2.529,
    "weights": 3_690_000,
    "planned_bytes": {"ram": 2_570_000_000},
    "frames_per_second": 1112.6,
    "batch_size": 16,
    "steps_of_a_sequence": 60,
    "steps_per_update": 400.0,
}


@pytest.fixture(scope="module")
def kept() -> dict[str, Any]:
    return dict(json.loads((ROOT / "docs/results/agents_cost.json").read_text()))


def test_row_has_the_minibatch_both_times_and_the_speed() -> None:
    assert row("R2D2", FOUND) == "| R2D2 | 16 × 60 | 400 | 733 | 1,850 | 2.53 | 3.69M | 2.57 GB | 1,110 |"


@pytest.mark.parametrize(("value", "text"), [(0.12345, "0.123"), (45.67, "45.7"), (123456.0, "123,000")])
def test_numbers_have_three_digits(value: float, text: str) -> None:
    assert significant(value) == text


def test_every_agent_is_a_shipped_spec() -> None:
    assert [name for name in AGENTS if not (RUNS / f"{name}.toml").exists()] == []


def test_page_has_the_table_that_the_file_makes(kept: dict[str, Any]) -> None:
    assert table(kept["agents"]) in (ROOT / "docs/algorithms.md").read_text(encoding="utf-8")


def test_every_agent_was_measured(kept: dict[str, Any]) -> None:
    assert list(kept["agents"]) == list(AGENTS)
