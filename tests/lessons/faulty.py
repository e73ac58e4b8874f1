"""Runs tests against broken copies of the package: a command a line comes in, a verdict a line goes out.

Each command is a JSON list: the folder that holds the copy, a file for pytest's report, and a test's node id.
The verdict is pytest's exit code. What is heavy is imported once, but for the package itself, and each
command has a fork of its own.
"""

import contextlib
import json
import os
import sys
import traceback
from pathlib import Path

import cv2
import gymnasium
import hypothesis.extra
import jaxtyping
import numpy
import polars
import pytest
import rich.live
import scipy.special
import torch._dynamo
import typeguard
import typer

HEAVY = (cv2, gymnasium, hypothesis, jaxtyping, numpy, polars, rich, scipy, torch, typeguard, typer)
TESTS = Path(__file__).parents[1]
IMPORTED_EARLY = "ignore:Module already imported:pytest.PytestAssertRewriteWarning"
OPTIONS = ("-q", "-x", "-p", "no:cacheprovider", "--timeout", "60", "-m", "", "-W", IMPORTED_EARLY)


def run(copy: str, report: str, node: str) -> int:
    """Run a test in this process with the package that lies in `copy`."""
    os.environ["PYTHONPATH"] = copy  # for the processes that the test starts
    sys.path.insert(0, copy)
    os.chdir(TESTS.parent)
    with Path(report).open("w") as file, contextlib.redirect_stdout(file), contextlib.redirect_stderr(file):
        code = pytest.main([*OPTIONS, str(TESTS / node)])
    import atari_dqn

    assert Path(atari_dqn.__file__).is_relative_to(copy), "the test saw another package"
    return int(code)


def forked(command: list[str]) -> int:
    """Return the exit code of `run` in a fork."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    code = 70
    try:
        code = run(*command)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


if __name__ == "__main__":
    assert "atari_dqn" not in sys.modules
    for line in sys.stdin:
        sys.stdout.write(f"{forked(json.loads(line))}\n")
        sys.stdout.flush()
