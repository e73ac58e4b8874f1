"""The keys in which two specs differ, in wide and in narrow terminals."""

import pytest
from rich.console import Console

from atari_dqn.view.differences import differences_view

ROWS = [("toggles.double", "false", "true"), ("exploration.epsilon_decay_frames", "1000000", "100000")]


def shown(columns: int, left: str = "pong_trackA", rows: list[tuple[str, str, str]] = ROWS) -> list[str]:
    console = Console(width=columns)
    with console.capture() as captured:
        console.print(differences_view(rows, left, "pong_quick", columns=columns))
    return [line.rstrip() for line in captured.get().splitlines() if line.strip()]


def test_a_wide_terminal_has_a_table() -> None:
    lines = shown(80)
    assert lines[0].split() == ["key", "pong_trackA", "pong_quick"]
    assert lines[2].split() == ["toggles.double", "false", "true"]


@pytest.mark.parametrize("columns", [40, 60])
def test_a_narrow_terminal_has_both_values_below_each_key(columns: int) -> None:
    assert shown(columns) == [
        "- pong_trackA",
        "+ pong_quick",
        "toggles.double",
        "  - false",
        "  + true",
        "exploration.epsilon_decay_frames",
        "  - 1000000",
        "  + 100000",
    ]


def test_a_long_name_breaks_no_value() -> None:
    value = "a_value_of_thirty_letters_____"
    lines = shown(64, left="a_folder_with_a_long_name/" * 3, rows=[("network.init", "1", value)])
    assert lines[-1].split() == ["network.init", "1", value]
