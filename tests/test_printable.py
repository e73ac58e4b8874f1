"""Escaping of text that comes from files and file names."""

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
def test_characters_that_are_not_printable_are_escaped(text, shown):
    assert printable(text) == shown


def test_printable_characters_of_every_script_are_kept():
    assert printable("Pong β=0.4 · 蔵 🎮") == "Pong β=0.4 · 蔵 🎮"


def test_printable_lines_keeps_line_feeds():
    assert printable_lines("one\ntwo\x1b[2J\r\n") == "one\ntwo\\x1b[2J\\r\n"
