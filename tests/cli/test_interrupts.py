"""Ctrl-C before a run has begun."""

import subprocess
import sys
from pathlib import Path

import pytest

SPEC = Path(__file__).parents[2] / "runs" / "catch_smoke.toml"

INTERRUPTED_IMPORT = """
import atexit, os, signal, sys

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Finder())
atexit.register(lambda: print("whole:", "atari_dqn.train.build" in sys.modules, file=sys.stderr))
from atari_dqn.cli import main
main()
"""


INTERRUPTED_START = """
import os, signal, sys

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "typer":
            os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Finder())
from atari_dqn.cli import main
main()
"""


def test_interrupt_while_the_program_loads_itself_ends_it_in_words() -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_START, "--help"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == "interrupted before anything had begun\n"


def test_interrupt_that_the_program_was_started_to_ignore_stays_ignored() -> None:
    ignoring = INTERRUPTED_START.replace("signal.default_int_handler", "signal.SIG_IGN")
    done = subprocess.run(
        [sys.executable, "-c", ignoring, "--version"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


INTERRUPTED_END = """
import atexit, os, signal, sys

signal.signal(signal.SIGINT, signal.default_int_handler)
atexit.register(lambda: os.kill(os.getpid(), signal.SIGINT))
from atari_dqn.cli import main
main()
"""


@pytest.mark.parametrize(("option", "status"), [("--version", 0), ("--no-such-option", 2)])
def test_interrupt_while_python_ends_changes_neither_status_nor_output(option: str, status: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_END, option], capture_output=True, text=True, check=False
    )
    assert done.returncode == status
    assert "Traceback" not in done.stderr


INTERRUPTED_LINE = """
import os, signal, sys
from atari_dqn.cli import app, main

class Output(app._Output):
    def write(self, data):
        written = super().write(data)
        os.kill(os.getpid(), signal.SIGINT)
        return written

signal.signal(signal.SIGINT, signal.default_int_handler)
app._Output = Output
main()
"""


def test_line_during_whose_writing_an_interrupt_comes_is_not_written_again() -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_LINE, "--version"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.count("atari_dqn")) == (130, 1)
    assert done.stderr == "interrupted; what had been saved before is whole\n"


@pytest.mark.slow
def test_interrupt_while_packages_load_waits_for_them_and_ends_the_command_in_words(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_IMPORT, "train", str(SPEC), "--run-dir", str(tmp_path / "run")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 130
    assert done.stderr == "interrupted; what had been saved before is whole\nwhole: True\n"
    assert not (tmp_path / "run").exists()
