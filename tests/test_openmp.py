"""How long threads wait before they sleep: limited when the package is imported, unless the user set it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from atari_dqn import MOST_SPINS, WAIT_VARIABLES, limit_waiting, wait_variables

SPEC = Path(__file__).parents[1] / "runs" / "catch_smoke.toml"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {"OMP_WAIT_POLICY": "passive", "GOMP_SPINCOUNT": "2000"}),
        ({"OMP_WAIT_POLICY": "active"}, {"OMP_WAIT_POLICY": "active"}),
        ({"GOMP_SPINCOUNT": "1000"}, {"GOMP_SPINCOUNT": "1000"}),
        ({"KMP_BLOCKTIME": "200"}, {"KMP_BLOCKTIME": "200"}),
        ({"KMP_LIBRARY": "turnaround"}, {"KMP_LIBRARY": "turnaround"}),
    ],
)
def test_waiting_is_limited_unless_the_user_has_set_how_they_wait(before, after) -> None:
    environment = dict(before)
    limit_waiting(environment, loaded=())
    assert environment == after


def test_nothing_is_set_after_torch_is_imported() -> None:
    environment: dict[str, str] = {}
    limit_waiting(environment, loaded=("torch",))
    assert environment == {}


def test_set_variables_are_returned_by_name() -> None:
    assert wait_variables({"OMP_NUM_THREADS": "2", "OMP_WAIT_POLICY": "active"}) == {
        "OMP_WAIT_POLICY": "active"
    }


AT_TORCH = """
import os, sys

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            print("at torch:", os.environ.get("OMP_WAIT_POLICY"), flush=True)
            os._exit(0)

sys.meta_path.insert(0, Finder())
sys.argv = ["dqn", *sys.argv[1:]]
"""
"""Prints how threads wait when torch is about to be imported, and exits."""


@pytest.mark.parametrize(
    "entry",
    [
        f"import atari_dqn.cli; sys.argv[1:] = ['bench', {str(SPEC)!r}]; atari_dqn.cli.main()",
        "import atari_dqn.agent.rules",
        "import atari_dqn.envs.worker, torch",
        "import atari_dqn.record.__main__, torch",
        f"import runpy; sys.argv[1:] = ['bench', {str(SPEC)!r}]; "
        "runpy.run_module('atari_dqn', run_name='__main__', alter_sys=True)",
        "import runpy; sys.argv[1:] = ['cpu', '1', str(os.getppid())]; "
        "runpy.run_module('atari_dqn.train.estimate', run_name='__main__', alter_sys=True)",
        "import atari_dqn.evaluation.frozen_agent",
        "import atari_dqn.verify.repetition",
        "import atari_dqn.train.launch",
    ],
    ids=[
        "console script",
        "library",
        "worker",
        "video",
        "python -m atari_dqn",
        "estimate",
        "evaluation",
        "verify",
        "launch",
    ],
)
def test_wait_policy_is_set_before_torch_is_imported(entry: str) -> None:
    done = run(AT_TORCH + entry)
    assert done.stdout == "at torch: passive\n", done.stderr


def run(program: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a program without the variables that set how threads wait, but for those given."""
    others = {name: value for name, value in os.environ.items() if name not in WAIT_VARIABLES}
    return subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env={**others, **variables},
        check=False,
    )


def test_processes_that_the_package_starts_wait_in_the_same_way() -> None:
    child = "import os; print(os.environ['OMP_WAIT_POLICY'], os.environ['GOMP_SPINCOUNT'])"
    done = run(f"import atari_dqn, subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])")
    assert done.stdout == "passive 2000\n", done.stderr


@pytest.mark.slow
def test_threads_of_torch_soon_sleep() -> None:
    """GCC's OpenMP prints, when it is loaded, how often a waiting thread looks before it sleeps."""
    done = run("import atari_dqn, torch; torch.get_num_threads()", OMP_DISPLAY_ENV="verbose")
    found = re.search(r"GOMP_SPINCOUNT = '(\d+)'", done.stderr)
    if found is None:
        pytest.skip("torch has another OpenMP here")
    assert int(found[1]) == MOST_SPINS
