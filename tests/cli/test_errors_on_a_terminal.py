"""Error messages on a terminal are broken at words; in a pipe a line is a message."""

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios

from atari_dqn.view.wrapping import lines_at_words

COMMAND = [sys.executable, "-m", "atari_dqn", "resume", "/nowhere/at all"]
MESSAGE = "error: run directory '/nowhere/at all': not found; expected a directory created by `dqn train`"


def test_a_message_on_a_terminal_is_broken_at_words() -> None:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 40, 0, 0))
    subprocess.run(COMMAND, stderr=theirs, check=False)
    os.close(theirs)
    shown = os.read(ours, 4096).decode().split("\r\n")
    os.close(ours)
    assert max(map(len, shown)) <= 40
    assert " ".join(map(str.strip, shown)).rstrip() == MESSAGE


def test_a_message_in_a_pipe_is_one_line() -> None:
    done = subprocess.run(COMMAND, stderr=subprocess.PIPE, text=True, check=False)
    assert done.stderr == MESSAGE + "\n"


def test_a_word_longer_than_a_line_stays_whole() -> None:
    path = "/a-long/path-that-is/longer-than/a-line"
    assert lines_at_words(f"no file {path} is here", 20) == ["no file", f"  {path}", "  is here"]


def test_a_command_in_backquotes_stays_whole() -> None:
    lines = lines_at_words("mend it with `ln -sfn step /some/path` now", 20)
    assert lines == ["mend it with", "  `ln -sfn step /some/path`", "  now"]
