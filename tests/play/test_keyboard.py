"""Keys that a terminal reports become actions."""

import pytest

from atari_dqn.play.keyboard import HOLD_SECONDS, Keyboard, action_of

ALL = ("noop", "fire", "up", "right", "left", "down", "upright", "upleft", "upfire", "uprightfire")
PONG = ("noop", "fire", "right", "left", "rightfire", "leftfire")


class Typist:
    """What is typed, and a clock."""

    def __init__(self) -> None:
        self.typed, self.time = "", 0.0
        self.keyboard = Keyboard(self.read, lambda: self.time)

    def read(self) -> str:
        typed, self.typed = self.typed, ""
        return typed

    def held_after(self, typed: str) -> set[str]:
        self.typed = typed
        self.keyboard.poll()
        return self.keyboard.held()


@pytest.mark.parametrize(
    ("typed", "held"),
    [("\x1b[A", {"up"}), ("\x1bOD", {"left"}), ("w ", {"up", "fire"}), ("D", {"right"}), ("x", set())],
)
def test_keys_are_held(typed: str, held: set[str]) -> None:
    assert Typist().held_after(typed) == held


def test_a_key_is_released_when_it_is_not_repeated() -> None:
    typist = Typist()
    typist.held_after("a")
    typist.time = HOLD_SECONDS
    assert typist.keyboard.held() == set()


def test_a_key_that_is_repeated_stays_held() -> None:
    typist = Typist()
    typist.held_after("a")
    typist.time = 0.9 * HOLD_SECONDS
    typist.held_after("a")
    typist.time = 1.8 * HOLD_SECONDS
    assert typist.keyboard.held() == {"left"}


def test_an_opposite_key_releases_the_first() -> None:
    assert Typist().held_after("ad") == {"right"}


def test_other_keys_are_commands() -> None:
    typist = Typist()
    typist.held_after("qap")
    assert typist.keyboard.commands == ["q", "p"]


@pytest.mark.parametrize(
    "sequence", ["\x1bOQ", "\x1b[12~", "\x1b[1;2D", "\x1b[[A", "\x1b[3;5~", "\x1b[200~"],
    ids=["F2", "F2 of a console", "Shift-Left", "F1 of Linux", "Ctrl-Delete", "paste"],
)  # fmt: skip
def test_a_key_without_a_meaning_neither_moves_nor_commands(sequence: str) -> None:
    typist = Typist()
    assert typist.held_after(sequence) == set()
    assert typist.keyboard.commands == []


@pytest.mark.parametrize("cut", [1, 2])
def test_a_sequence_that_is_read_in_two_parts_is_one_key(cut: int) -> None:
    typist = Typist()
    assert typist.held_after("\x1b[A"[:cut]) == set()
    assert typist.held_after("\x1b[A"[cut:]) == {"up"}
    assert typist.keyboard.commands == []


def test_a_letter_after_escape_is_a_command() -> None:
    typist = Typist()
    typist.held_after("\x1b")
    typist.held_after("q")
    assert typist.keyboard.commands == ["q"]


@pytest.mark.parametrize(
    ("held", "action"),
    [
        (set(), "noop"),
        ({"up"}, "up"),
        ({"up", "fire"}, "upfire"),
        ({"up", "right", "fire"}, "uprightfire"),
        ({"left", "up"}, "upleft"),
        ({"down", "fire"}, "down"),  # the game has no downfire
    ],
)
def test_held_keys_select_the_action_that_joins_most_of_them(held: set[str], action: str) -> None:
    assert ALL[action_of(held, ALL)] == action


def test_keys_without_an_action_of_the_game_select_the_no_op() -> None:
    assert PONG[action_of({"up"}, PONG)] == "noop"
