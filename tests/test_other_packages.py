"""A package outside the tree adds a torso and a loss through entry points, without a change of ours."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from forked import CommandServer, Finished
from tiny import TINY_CATCH

from atari_dqn.spec import keys

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
    "training.total_frames=80",
    "--set",
    "replay.prefill_steps=10",
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


@pytest.fixture
def dqn(command_server: CommandServer, packages: Path) -> Callable[..., Finished]:
    """Runs a command where the packages are installed."""
    return partial(command_server.run, path=[str(packages)])


def test_torso_and_loss_of_another_package_train_resume_and_compare(
    dqn: Callable[..., Finished], tmp_path: Path
) -> None:
    run = tmp_path / "run"
    made = dqn("train", TINY_CATCH, *SETS, "--run-dir", run, "--plain")
    assert made.code == 0, made.err
    more = dqn("resume", run, "--frames", "100", "--plain")
    assert more.code == 0, more.err
    compared = dqn("compare", run, "--json", tmp_path / "compared.json")
    assert compared.code == 0, compared.err
    assert json.loads((tmp_path / "run/summary.json").read_text())["env_frames"] == 100
    assert "log_cosh" in (tmp_path / "run/spec.toml").read_text()


def test_name_that_no_package_has_is_refused(dqn: Callable[..., Finished]) -> None:
    refused = dqn("train", TINY_CATCH, "--set", "network.kind=narow", "--plain")
    assert refused.code == 2
    assert 'network.kind: found "narow"' in refused.err


def test_name_of_ours_is_allowed_without_a_search_of_the_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    def search(group: str) -> tuple[str, ...]:
        raise AssertionError(group)

    monkeypatch.setattr(keys, "entry_point_names", search)
    assert keys.KEYS["network.kind"].allows("nature")
