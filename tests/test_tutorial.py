"""The tutorial's commands: each is one that this program takes, and all of them run, one after another."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from atari_dqn.cli.app import app
from atari_dqn.spec.shipped import shipped_specs, shipped_sweeps

ROOT = Path(__file__).parents[1]
BLOCKS = re.findall(r"^```\n(.*?)^```", (ROOT / "docs" / "tutorial.md").read_text(), re.DOTALL | re.MULTILINE)
ENDLESS = ("dqn dashboard", "--notify", "pip install")
"""Commands that serve until they are ended, take hours, or change what is installed."""


def commands() -> Iterator[list[str]]:
    """Yield the words of each line of a block that begins with `dqn`."""
    for line in "".join(BLOCKS).splitlines():
        if line.strip().startswith("dqn "):
            yield shlex.split(line)[1:]


@pytest.mark.parametrize("words", list(commands()), ids=" ".join)
def test_command_is_one_that_this_program_takes(words: list[str]):
    command, name = typer.main.get_command(app), "dqn"
    while hasattr(command, "commands"):
        name, *words = words
        command = command.commands[name]
    context = command.make_context(name, list(words))
    assert context.args == []


def test_every_spec_that_the_tutorial_names_is_shipped():
    named = {words[1] for words in commands() if words[0] == "train"}
    assert named >= {"catch_smoke", "pong_quick"}
    assert named - shipped_specs().keys() == set()


def test_every_sweep_that_the_tutorial_names_is_shipped():
    named = {words[1] for words in commands() if words[0] == "sweep"}
    assert named == {"catch_n_step"}
    assert named - shipped_sweeps().keys() == set()


@pytest.mark.slow
def test_the_commands_run_one_after_another(tmp_path: Path):
    (tmp_path / "dqn").write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m atari_dqn "$@"\n')
    (tmp_path / "dqn").chmod(0o755)
    lines = [line for line in "".join(BLOCKS).splitlines() if not any(words in line for words in ENDLESS)]
    # a file of the name that the tutorial sweeps comes before the shipped one, of which it has a seed
    sweep = shipped_sweeps()["catch_n_step"].read_text()
    (tmp_path / "catch_n_step").write_text(sweep.replace("seeds = 5", "seeds = 2"))
    # the first run is not interrupted here, so that there is more to resume only with a larger budget
    script = "\n".join(lines).replace("smoke_seed1", "smoke_seed1 --frames 4_400")
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "OMP_NUM_THREADS": "1"}
    bash = ["bash", "-e", "-c", script]
    done = subprocess.run(bash, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    # which of the two depends on rounding, so on the processor: docs/tutorial.md gives one machine's table
    assert re.search(r"mean minus that of the first group: .*: (a|no) difference is shown", done.stdout)
