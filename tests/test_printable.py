"""Text that comes from files and names, made safe to show."""

import pytest

from atari_dqn.formatting import printable, printable_lines


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J", r"\x1b[2J"),
        ("\x9b31m", r"\x9b31m"),
        ("a\nb\r\tc\x7f", r"a\nb\r\tc\x7f"),
        ("a\u202eb\u2066c\u200fd", r"a\u202eb\u2066c\u200fd"),
        ("half \ud800", r"half \ud800"),
        ("run\udcff", r"run\udcff"),
        ("a\u2028b", r"a\u2028b"),
    ],
    ids=["escape", "C1", "C0", "direction", "surrogate", "byte of a name", "line separator"],
)
def test_characters_that_steer_are_escaped(text, shown):
    assert printable(text) == shown


def test_letters_of_every_script_stay():
    assert printable("Pong β=0.4 · 蔵 🎮") == "Pong β=0.4 · 蔵 🎮"


def test_lines_stay_lines_where_there_may_be_several():
    assert printable_lines("one\ntwo\x1b[2J\r\n") == "one\ntwo\\x1b[2J\\r\n"
