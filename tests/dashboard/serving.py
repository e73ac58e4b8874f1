"""Starts `dqn dashboard` as a program."""

import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

COMMAND = [sys.executable, "-c", "from atari_dqn.cli import main; main()", "dashboard"]
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def served(root: Path, *options: str) -> Iterator[str]:
    """Yield the address that the program prints: it answers by then."""
    command = [*COMMAND, str(root), "--port", str(free_port()), *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().split()[0].replace("0.0.0.0", "127.0.0.1")
    finally:
        process.terminate()
        process.communicate(timeout=30)
