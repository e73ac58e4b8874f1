"""What Ctrl-Z leaves in a terminal with a live view, and what the view shows when it continues."""

import os
import pty
import signal
import subprocess
import sys

import pyte
import pytest

PROGRAM = """
import os, sys
from rich.console import Console
from atari_dqn.view.suspendable_live import SuspendableLive

with SuspendableLive("a line\\na picture", console=Console(), screen={screen}, auto_refresh=False) as live:
    live.refresh()
    os.write(2, b"shown\\n")  # rich shows what is printed
    sys.stdin.readline()
    live.refresh()
"""


@pytest.fixture(params=[True, False], ids=["whole_screen", "some_lines"])
def terminal_states(request: pytest.FixtureRequest) -> dict[str, pyte.Screen]:
    """Stop and continue a live view; return the terminal while it is stopped, and at the end."""
    ours, theirs = pty.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "40", "LINES": "10"}
    found = {}
    text = b"shell line\r\n"
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(screen=request.param)],
        stdin=subprocess.PIPE, stdout=theirs, stderr=subprocess.PIPE, env=environment,
        process_group=0,  # a group without a parent in its session, as this test may be in, is never stopped
    ) as process:  # fmt: skip
        assert process.stderr is not None
        assert process.stderr.readline() == b"shown\n", process.stderr.read()
        os.kill(process.pid, signal.SIGTSTP)
        assert os.WIFSTOPPED(os.waitpid(process.pid, os.WUNTRACED)[1])
        text += os.read(ours, 65_536)
        found["stopped"] = drawn(text)
        text += b"stopped\r\n$ fg\r\n"
        os.kill(process.pid, signal.SIGCONT)
        process.communicate(b"\n", timeout=60)
    os.close(theirs)
    found["continued"] = drawn(text + os.read(ours, 65_536))
    os.close(ours)
    return found


def drawn(text: bytes) -> pyte.Screen:
    screen = pyte.Screen(40, 10)
    pyte.ByteStream(screen).feed(text)
    return screen


def test_a_stopped_view_leaves_the_cursor_to_the_shell(terminal_states: dict[str, pyte.Screen]) -> None:
    assert not terminal_states["stopped"].cursor.hidden


def test_a_continued_view_is_drawn_once(terminal_states: dict[str, pyte.Screen]) -> None:
    lines = [line.rstrip() for line in terminal_states["continued"].display]
    assert [line for line in lines if line] == ["a line", "a picture"]
