"""What a terminal shows during a game, whatever its size."""

import fcntl
import os
import pty
import struct
import sys
import termios

import numpy as np
import pyte
import pytest

from atari_dqn.errors import UserError
from atari_dqn.play.half_blocks import LEAST_COLUMNS
from atari_dqn.play.keyboard import HELP_TO_PLAY
from atari_dqn.play.terminal import Terminal

GAME = np.full((210, 160, 3), 120, dtype=np.uint8)
END = "\0"


class Screen(pyte.Screen):
    """Erases the last character of a line that is full, as xterm does: the cursor is still on it."""

    def erase_in_line(self, how: int = 0, private: bool = False) -> None:
        self.cursor.x = min(self.cursor.x, self.columns - 1)
        super().erase_in_line(how, private)

    def erase_in_display(self, how: int = 0, *args: object, **options: object) -> None:
        self.cursor.x = min(self.cursor.x, self.columns - 1)
        super().erase_in_display(how, *args, **options)


def displayed(sizes: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Show a game in a terminal that has some sizes in succession; return the lines at the last of them."""
    return [line.rstrip() for line in shown(sizes, monkeypatch).display]


def shown(sizes: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch) -> Screen:
    """Show a game in a terminal that has some sizes in succession; return the screen at the last of them."""
    ours, theirs = pty.openpty()
    with open(theirs, "r+b", buffering=0) as file, open(theirs, "w", closefd=False) as output:  # noqa: PTH123
        for name, stream in (("stdin", file), ("stdout", output), ("__stdout__", output)):
            monkeypatch.setattr(sys, name, stream)
        for variable in ("COLUMNS", "LINES", "TERM"):
            monkeypatch.delenv(variable, raising=False)
        resize(ours, *sizes[0])
        terminal = Terminal(HELP_TO_PLAY)
        for columns, lines in sizes:
            resize(ours, columns, lines)
            screen = Screen(columns, lines)
            for score in (0, 1):
                terminal.show([f"person {score}"], [GAME])
                print(end=END, file=output, flush=True)
                pyte.ByteStream(screen).feed(read_picture(ours))
    os.close(ours)
    return screen


def read_picture(terminal: int) -> bytes:
    text = b""
    while not text.endswith(END.encode()):
        text += os.read(terminal, 65_536)
    return text.removesuffix(END.encode())


def resize(terminal: int, columns: int, lines: int) -> None:
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))


@pytest.mark.parametrize("size", [(50, 20), (40, 16), (80, 24), (53, 60)])
def test_a_game_does_not_scroll_its_terminal(size: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    assert displayed([size], monkeypatch)[0] == "person 1"


def test_a_game_as_wide_as_its_terminal_has_its_last_column(monkeypatch: pytest.MonkeyPatch) -> None:
    assert displayed([(53, 60)], monkeypatch)[1] == 53 * "▄"


@pytest.mark.parametrize(
    ("announced", "grey"),
    [("truecolor", "787878"), ("24bit", "787878"), ("", "878787")],  # 120, and 135 of the 256 colours
)
def test_colours_are_exact_where_the_terminal_has_them(
    announced: str, grey: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLORTERM", announced)
    assert shown([(80, 24)], monkeypatch).buffer[1][0].fg == grey


@pytest.mark.parametrize(("size", "asked"), [((80, 2), "enlarge to 40 × 16"), ((9, 20), "enlarge t")])
def test_a_terminal_that_is_made_too_small_asks_for_more(
    size: tuple[int, int], asked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "\n".join(displayed([(80, 24), size], monkeypatch)).strip() == asked


def test_a_terminal_that_cannot_move_its_cursor_is_refused_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", "dumb")
    for stream in (sys.stdin, sys.stdout):
        monkeypatch.setattr(stream, "isatty", lambda: True)
    with pytest.raises(UserError, match=r"found TERM=dumb; .* xterm-256color; `--window` plays in a window"):
        Terminal(HELP_TO_PLAY)


def test_the_narrowest_terminal_says_how_to_quit() -> None:
    assert "q quits" in HELP_TO_PLAY[:LEAST_COLUMNS]
