"""The passive wait policy of torch's threads, set when the package is imported unless the user set one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from atari_dqn import WAIT_VARIABLES, wait_passively, wait_variables

SPEC = Path(__file__).parents[1] / "runs" / "catch_smoke.toml"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {"OMP_WAIT_POLICY": "passive"}),
        ({"OMP_WAIT_POLICY": "active"}, {"OMP_WAIT_POLICY": "active"}),
        ({"GOMP_SPINCOUNT": "1000"}, {"GOMP_SPINCOUNT": "1000"}),
        ({"KMP_BLOCKTIME": "200"}, {"KMP_BLOCKTIME": "200"}),
        ({"KMP_LIBRARY": "turnaround"}, {"KMP_LIBRARY": "turnaround"}),
    ],
)
def test_threads_wait_passively_unless_the_user_has_set_how_they_wait(before, after) -> None:
    environment = dict(before)
    wait_passively(environment, loaded=())
    assert environment == after


def test_nothing_is_set_after_torch_is_imported() -> None:
    environment: dict[str, str] = {}
    wait_passively(environment, loaded=("torch",))
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
    ],
    ids=["console script", "library", "worker", "video"],
)
def test_wait_policy_is_set_before_torch_is_imported(entry: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name not in WAIT_VARIABLES}
    done = subprocess.run(
        [sys.executable, "-c", AT_TORCH + entry], capture_output=True, text=True, env=environment, check=False
    )
    assert done.stdout == "at torch: passive\n", done.stderr
