import subprocess
import sys

import pytest

from atari_dqn.cli.app import COMMANDS

HEAVY = ("torch", "numpy", "ale_py", "gymnasium", "cv2", "polars")


def run_in_fresh_process(arguments: list[str]) -> tuple[str, set[str]]:
    """Return what `dqn` prints, and the heavy packages it has imported by its end."""
    code = (
        "import sys, atexit\n"
        f"atexit.register(lambda: print(*sorted(set(sys.modules) & set({HEAVY!r})), file=sys.stderr))\n"
        "from atari_dqn.cli import main\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout, set(done.stderr.split())


@pytest.mark.parametrize("arguments", [["--help"], ["train", "--help"], ["spec", "--help"], ["--version"]])
def test_help_imports_nothing_heavy(arguments):
    _, imported = run_in_fresh_process(arguments)
    assert imported == set()


def test_help_names_every_command():
    output, _ = run_in_fresh_process(["--help"])
    assert [command for command in (*COMMANDS, "spec") if f" {command} " not in output] == []
