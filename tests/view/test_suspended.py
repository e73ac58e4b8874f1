"""What signals leave in a terminal with a live view, and what the view shows when it continues."""

import os
import pty
import select
import signal
import subprocess
import sys
from pathlib import Path

import pyte
import pytest
from displayed import Displayed

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

ENVIRONMENT = os.environ | {"TERM": "xterm", "COLUMNS": "40", "LINES": "10"}


@pytest.fixture(params=[True, False], ids=["whole_screen", "some_lines"])
def terminal_states(request: pytest.FixtureRequest) -> dict[str, pyte.Screen]:
    """Stop and continue a live view; return the terminal while it is stopped, and at the end."""
    ours, theirs = pty.openpty()
    found = {}
    text = b"shell line\r\n"
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(screen=request.param)],
        stdin=subprocess.PIPE, stdout=theirs, stderr=subprocess.PIPE, env=ENVIRONMENT,
        process_group=0,  # a group without a parent in its session, as this test may be in, is never stopped
    ) as process:  # fmt: skip
        assert process.stderr is not None
        assert process.stderr.readline() == b"shown\n", process.stderr.read()
        os.kill(process.pid, signal.SIGTSTP)
        assert os.WIFSTOPPED(os.waitpid(process.pid, os.WUNTRACED)[1])
        text += read_from(ours, until=b"\x1b[?25h")
        found["stopped"] = drawn(text)
        text += b"stopped\r\n$ fg\r\n"
        os.kill(process.pid, signal.SIGCONT)
        process.communicate(b"\n", timeout=60)
    os.close(theirs)
    found["continued"] = drawn(text + read_from(ours))
    os.close(ours)
    return found


def read_from(terminal: int, *, until: bytes = b"") -> bytes:
    """Read what is displayed until a text has come; without one, to the end."""
    text = b""
    while not until or until not in text:
        if not select.select([terminal], [], [], 10)[0]:
            break
        try:
            text += os.read(terminal, 4096)
        except OSError:  # the other side is closed
            break
    return text


BAR = """
import sys
from atari_dqn.view.bar import progress_bar

with progress_bar(width=8) as on_progress:
    on_progress("games", 1, 3)
    sys.__stdout__.write("shown\\n")
    sys.__stdout__.flush()
    sys.stdin.readline()
"""


def test_a_bar_that_a_signal_ends_leaves_the_cursor_to_the_shell() -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", BAR],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=theirs,
        env=ENVIRONMENT,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"shown\n"
        process.terminate()
        assert process.wait(60) == -signal.SIGTERM
    os.close(theirs)
    text = read_from(ours)
    os.close(ours)
    assert text.rindex(b"\x1b[?25h") > text.rindex(b"\x1b[?25l")


@pytest.mark.usefixtures("sigquit_by_default")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGQUIT])
def test_a_view_that_a_signal_ends_leaves_the_cursor_and_the_screen_to_the_shell(
    number: signal.Signals,
) -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        ["sh", "-c", 'ulimit -c 0; exec "$@"', "sh", sys.executable, "-c", PROGRAM.format(screen=True)],
        stdin=subprocess.PIPE, stdout=theirs, stderr=subprocess.PIPE, env=ENVIRONMENT,
    ) as process:  # fmt: skip
        assert process.stderr is not None
        assert process.stderr.readline() == b"shown\n", process.stderr.read()
        process.send_signal(number)
        assert process.wait(60) == -number
    os.close(theirs)
    text = read_from(ours)
    os.close(ours)
    assert text.endswith(b"\x1b[?1049l\x1b[?25h")


DEFERRED = """
import os, signal, sys
from atari_dqn.machine.terminal_signals import TerminalSignals

signals = TerminalSignals(lambda: os.write(1, b"left "), lambda: os.write(1, b"entered "))
signals.begin()
with signals.drawing():
    signal.raise_signal(signal.SIGTSTP)
    os.write(1, b"picture ")
os.write(1, b"end")
"""


def test_ctrl_z_during_a_drawing_stops_the_process_after_it() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", DEFERRED], stdout=subprocess.PIPE, env=ENVIRONMENT, process_group=0
    ) as process:
        assert os.WIFSTOPPED(os.waitpid(process.pid, os.WUNTRACED)[1])
        os.kill(process.pid, signal.SIGCONT)
        assert process.communicate(timeout=60)[0] == b"picture left entered end"


LOOP = """
import sys, time
from rich.console import Console
from atari_dqn.view.suspendable_live import SuspendableLive

with open(sys.argv[1], "a") as log, SuspendableLive(
    "a picture", console=Console(), screen={screen}, auto_refresh=False
) as live:
    try:
        while True:
            live.refresh()
            print("refreshed", file=log, flush=True)
            time.sleep(0.02)
    except KeyboardInterrupt:
        pass
"""
SHELL = """
set -m
"$@"
log="${@: -1}"
echo stopped
bg
most=$(($(wc -l < "$log") + 5))
while [ $(wc -l < "$log") -lt $most ]; do sleep 0.02; done
echo by the shell
fg
echo ended $?
"""


class Job(Displayed):
    """A command of a shell with job control on a terminal of its own."""

    def __init__(self, command: list[str]) -> None:
        self.ours, theirs = pty.openpty()
        self.text = b""
        shell = ["setsid", "--ctty", "bash", "-c", SHELL, "bash", *command]
        self.process = subprocess.Popen(shell, stdin=theirs, stdout=theirs, stderr=theirs, env=ENVIRONMENT)
        os.close(theirs)


@pytest.mark.parametrize("screen", [True, False])
def test_a_view_in_the_background_draws_nothing_until_it_is_in_the_foreground(
    screen: bool, tmp_path: Path
) -> None:
    job = Job([sys.executable, "-c", LOOP.format(screen=screen), str(tmp_path / "log")])
    job.read_until(b"a picture")
    job.type(b"\x1a")
    job.read_until(b"by the shell")
    job.read_until(b"a picture")
    job.type(b"\x03")
    job.read_until(b"ended 0")
    assert job.process.wait(60) == 0
    os.close(job.ours)
    in_background = job.text[job.text.index(b"stopped\r\n") : job.text.index(b"by the shell")]
    assert b"\x1b" not in in_background
    assert b"a picture" not in in_background


def drawn(text: bytes) -> pyte.Screen:
    screen = pyte.Screen(40, 10)
    pyte.ByteStream(screen).feed(text)
    return screen


def test_a_stopped_view_leaves_the_cursor_to_the_shell(terminal_states: dict[str, pyte.Screen]) -> None:
    assert not terminal_states["stopped"].cursor.hidden


def test_a_continued_view_is_drawn_once(terminal_states: dict[str, pyte.Screen]) -> None:
    lines = [line.rstrip() for line in terminal_states["continued"].display]
    assert [line for line in lines if line] == ["a line", "a picture"]
