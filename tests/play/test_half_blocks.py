"""Screens as characters."""

import numpy as np
import pytest

from atari_dqn.play.half_blocks import fitting_size, games_as_text, half_blocks


@pytest.mark.parametrize(
    ("columns", "lines", "size"),
    [(80, 22, (58, 42)), (39, 22, (39, 28)), (200, 30, (80, 60)), (40, 14, (37, 26))],
)
def test_the_largest_picture_of_a_television_fits(columns: int, lines: int, size: tuple[int, int]) -> None:
    assert fitting_size(columns, lines) == size


def screen(*rows: tuple[tuple[int, int, int], ...]) -> np.ndarray:
    return np.array(rows, dtype=np.uint8)


RED, GREEN, BLUE, WHITE = (255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255)


def test_a_character_shows_one_pixel_above_another() -> None:
    (line,) = half_blocks(screen((RED,), (BLUE,)), 1, 2, exact=True)
    assert line == "\x1b[48;2;255;0;0m\x1b[38;2;0;0;255m▄\x1b[0m"


def test_colours_of_the_cube_are_the_nearest() -> None:
    (line,) = half_blocks(screen((RED,), ((250, 250, 250),)), 1, 2, exact=False)
    assert line == "\x1b[48;5;196m\x1b[38;5;231m▄\x1b[0m"


def test_green_and_blue_have_places_of_their_own_in_the_cube() -> None:
    (line,) = half_blocks(screen((GREEN,), (BLUE,)), 1, 2, exact=False)
    assert line == "\x1b[48;5;46m\x1b[38;5;21m▄\x1b[0m"


def test_a_ball_of_one_pixel_is_not_lost_in_a_smaller_picture() -> None:
    black, ball = np.zeros((8, 4, 3), dtype=np.uint8), np.zeros((8, 4, 3), dtype=np.uint8)
    ball[3, 3] = WHITE
    assert half_blocks(ball, 1, 2, exact=True) != half_blocks(black, 1, 2, exact=True)


def test_a_code_is_written_only_where_colours_change() -> None:
    (line,) = half_blocks(screen((RED, RED, BLUE), (WHITE,) * 3), 3, 2, exact=False)
    assert line.count("▄") == 3
    assert line.count("\x1b[48") == 2


def test_a_screen_has_a_line_for_two_rows() -> None:
    lines = half_blocks(np.zeros((210, 160, 3), dtype=np.uint8), 58, 44, exact=False)
    assert len(lines) == 22


def test_facts_that_are_wider_than_their_game_are_cut() -> None:
    screens = [np.zeros((210, 160, 3), dtype=np.uint8)] * 2
    facts = ["abcdefghijklmnopqrstuvwxyz", "person 0"]
    above, *_ = games_as_text(facts, screens, (40, 16), help_line="", exact=False)
    assert above.rstrip() == "abcdefghijklmnopqrs person 0"
