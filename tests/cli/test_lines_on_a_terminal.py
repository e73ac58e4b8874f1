"""Sentences on a terminal are broken at words, where it would break them anywhere."""

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios

import pytest


@pytest.mark.parametrize(
    "command", [["spec", "check", "pong_quick"], ["tune", "pong_learning_rate", "--plan"]]
)
def test_no_line_is_wider_than_the_terminal(command: list[str]) -> None:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    subprocess.run([sys.executable, "-m", "atari_dqn", *command], stdout=theirs, check=True)
    os.close(theirs)
    shown = os.read(ours, 4096).decode().splitlines()
    os.close(ours)
    assert shown
    assert max(map(len, shown)) <= 80
