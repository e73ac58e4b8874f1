"""`dqn` without arguments, and the shells' completion."""

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from program import dqn

from atari_dqn.cli.app import app
from atari_dqn.cli.welcome import COMMANDS, greeting


@pytest.mark.parametrize("arguments", [[], ["--"]])
def test_without_a_command_the_program_greets_and_ends_well(arguments: list[str]) -> None:
    done = dqn(*arguments)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == greeting() + "\n"


def test_greeting_fits_into_80_columns() -> None:
    assert max(map(len, greeting().splitlines())) <= 80


def test_greeting_promises_no_number_that_depends_on_a_spec() -> None:
    assert [what for what in COMMANDS.values() if any(map(str.isdigit, what))] == []


def test_greeting_gives_three_commands_that_this_program_takes() -> None:
    assert len(COMMANDS) == 3
    program = typer.main.get_command(app)
    for line in COMMANDS:
        _, name, *words = shlex.split(line)
        assert line in greeting()
        assert program.commands[name].make_context(name, words).args == []


@pytest.mark.thorough
def test_commands_of_the_greeting_run_one_after_another(tmp_path: Path) -> None:
    for line in COMMANDS:
        done = dqn(*shlex.split(line)[1:], folder=tmp_path)
        assert done.returncode == 0, done.stderr


def completed_by_bash(line: str, folder: Path) -> list[str]:
    """Complete the last word of a line as bash does with the script that `--show-completion` prints."""
    (folder / "dqn").write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m atari_dqn "$@"\n')
    (folder / "dqn").chmod(0o755)
    script = f"""
        PATH={shlex.quote(str(folder))}:$PATH
        source <(dqn --show-completion bash)
        COMP_WORDS=({line}); COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 ))
        _dqn_completion dqn
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    command = ["bash", "-c", script]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash on this machine")
@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("dqn train catch_sm", ["catch_smoke"]),
        pytest.param("dqn comp", ["compare"], marks=pytest.mark.slow),
        pytest.param("dqn train mi", ["mine.toml"], marks=pytest.mark.slow),
        pytest.param("dqn eval outp", [], marks=pytest.mark.slow),  # bash goes on to complete the path
    ],
)
def test_bash_completes(line: str, words: list[str], tmp_path: Path) -> None:
    (tmp_path / "mine.toml").touch()
    (tmp_path / "outputs").mkdir()
    assert completed_by_bash(line, tmp_path) == words


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_has_a_completion_script(shell: str) -> None:
    done = dqn(_DQN_COMPLETE=f"source_{shell}")
    assert done.returncode == 0
    assert "complete_" + shell in done.stdout
