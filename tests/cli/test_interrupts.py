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
atexit.register(lambda: print("whole:", "atari_dqn.train.build" in sys.modules))
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


@pytest.mark.slow
def test_interrupt_while_packages_load_waits_for_them_and_ends_the_command_in_words(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_IMPORT, "train", str(SPEC), "--run-dir", str(tmp_path / "run")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (130, "whole: True\n")
    assert done.stderr == "interrupted; what had been saved before is whole\n"
    assert not (tmp_path / "run").exists()
