"""Invariant 7: with `fast/` deleted from a copy of the package all trains, resumes and passes its tests."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import atari_dqn

TESTS = Path(__file__).parents[1]
DQN = ("-P", "-c", "from atari_dqn.cli import main; main()")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]  # a program of its own each time, without kernels


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package, `fast/` aside."""
    folder = tmp_path_factory.mktemp("without_fast")
    shutil.copytree(
        Path(atari_dqn.__file__).parent,
        folder / "atari_dqn",
        ignore=shutil.ignore_patterns("fast", "__pycache__"),
    )
    return folder


SITE = """
import sys

# An editable installation finds `atari_dqn.fast` in the checkout, also where the copy does not have it.
sys.meta_path[:] = [finder for finder in sys.meta_path if "editable" not in getattr(finder, "__module__", "")]
"""


def run(copied: Path, *words: str) -> str:
    """Run Python with the copy in the package's place, whatever is installed."""
    (copied / "sitecustomize.py").write_text(SITE)
    there = {**os.environ, "PYTHONPATH": str(copied), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, *words], env=there, cwd=TESTS.parent, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-3_000:] + done.stderr[-3_000:]
    return done.stdout


def test_assembly_finds_no_fast_and_says_so(copied: Path) -> None:
    program = (
        "import atari_dqn, torch; from atari_dqn.assembly.acceleration import make_backend, kernels_here;"
        "print(atari_dqn.__file__); print(make_backend(torch.device('cpu')).choices(), kernels_here())"
    )
    output = run(copied, "-P", "-c", program)
    assert str(copied) in output
    assert "['all: PyTorch (atari_dqn.fast is not installed)'] ()" in output


def test_run_trains_and_a_resume_goes_on_exactly(copied: Path, tmp_path: Path) -> None:
    spec, whole, parts = str(TESTS / "tiny_catch.toml"), tmp_path / "whole", tmp_path / "parts"
    sets = ("--set", "toggles.double=true", "--set", "toggles.dueling=true", "--plain")
    run(copied, *DQN, "train", spec, *sets, "--set", "training.total_frames=1400", "--run-dir", str(whole))
    run(copied, *DQN, "train", spec, *sets, "--set", "training.total_frames=900", "--run-dir", str(parts))
    run(copied, *DQN, "resume", str(parts), "--frames", "1400", "--plain")
    digests = [json.loads((path / "summary.json").read_text())["state_digest"] for path in (whole, parts)]
    assert digests[0] == digests[1]
    assert json.loads((whole / "provenance.json").read_text())["kernels"] == []


def test_agents_take_the_course_that_was_recorded(copied: Path) -> None:
    chosen = "run_takes or Rainbow or IQN or DER or DQN"
    output = run(
        copied, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/train/test_golden.py", "-k", chosen
    )
    assert "passed" in output


@pytest.mark.thorough
def test_default_tests_of_agents_pass(copied: Path) -> None:
    output = run(copied, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/agent")
    assert "passed" in output
