"""Text from files made safe to show: no character in it steers a terminal or reorders a line."""

from __future__ import annotations


def printable(text: str) -> str:
    r"""Return text as one line in which every character without a picture of its own is escaped: `\x1b`.

    These are the control characters (line breaks too), the marks that reverse the direction of writing,
    and the halves of surrogate pairs that stand for bytes of a name which are not UTF-8.
    """
    return text if text.isprintable() else "".join(map(_escaped, text))


def printable_lines(text: str) -> str:
    """Return text of several lines, each made printable; only a line feed ends a line."""
    return "\n".join(map(printable, text.split("\n")))


def _escaped(letter: str) -> str:
    return letter if letter.isprintable() else repr(letter)[1:-1]
