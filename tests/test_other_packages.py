"""A package outside the tree adds a torso and a loss through entry points, without a change of ours."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tiny import TINY_CATCH

MODULE = '''
import torch
from atari_dqn.agent import rules
from atari_dqn.agent.losses import ScalarLoss, TDLoss
from atari_dqn.agent.torsos import ConvolutionalTorso


class NarrowTorso(ConvolutionalTorso):
    """One convolution."""

    CONVOLUTIONS = ((8, 8, 4),)
    HIDDEN_UNITS = 16


def log_cosh(target_rule, settings):
    """Make the loss ln cosh of the TD error."""
    return TDLoss(target_rule=target_rule, distribution_loss=ScalarLoss(lambda error: error.cosh().log()))
'''
ENTRY_POINTS = """
[atari_dqn.networks]
narrow = other_agents:NarrowTorso
[atari_dqn.losses]
log_cosh = other_agents:log_cosh
"""
SETS = (
    "--set",
    "network.kind=narrow",
    "--set",
    "learner.loss=log_cosh",
    "--set",
    "training.total_frames=700",
)


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of installed packages with another author's part."""
    folder = tmp_path_factory.mktemp("packages")
    (folder / "other_agents.py").write_text(MODULE)
    info = folder / "other_agents-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: other-agents\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    return folder


def dqn(packages: Path, *words: str) -> subprocess.CompletedProcess[str]:
    there = {**os.environ, "PYTHONPATH": str(packages), "OMP_NUM_THREADS": "1"}
    program = [sys.executable, "-c", "from atari_dqn.cli import main; main()", *words]
    return subprocess.run(program, env=there, capture_output=True, text=True, check=False)


def test_torso_and_loss_of_another_package_train_resume_and_compare(packages: Path, tmp_path: Path) -> None:
    run = str(tmp_path / "run")
    made = dqn(packages, "train", str(TINY_CATCH), *SETS, "--run-dir", run, "--plain")
    assert made.returncode == 0, made.stderr
    more = dqn(packages, "resume", run, "--frames", "900", "--plain")
    assert more.returncode == 0, more.stderr
    compared = dqn(packages, "compare", run, "--json", str(tmp_path / "compared.json"))
    assert compared.returncode == 0, compared.stderr
    assert json.loads((tmp_path / "run/summary.json").read_text())["env_frames"] == 900
    assert "log_cosh" in (tmp_path / "run/spec.toml").read_text()


def test_name_that_no_package_has_is_refused(packages: Path) -> None:
    refused = dqn(packages, "train", str(TINY_CATCH), "--set", "network.kind=narow", "--plain")
    assert refused.returncode == 2
    assert 'network.kind: found "narow"' in refused.stderr
