"""A package outside the tree adds a torso and a loss through entry points, without a change of ours."""

import json
import shutil
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


def install(
    folder: Path, *, module: str = MODULE, name: str = "other-agents", version: str = "1.0",
    entry_points: str = ENTRY_POINTS,
) -> Path:  # fmt: skip
    """Install a package into a folder of packages, and return the folder."""
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (folder / "other_agents.py").write_text(module)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (info / "entry_points.txt").write_text(entry_points)
    return folder


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of installed packages with another author's part."""
    return install(tmp_path_factory.mktemp("packages"))


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


@pytest.fixture(scope="module")
def trained(command_server: CommandServer, packages: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run with both parts of version 1.0, for reading only."""
    run = tmp_path_factory.mktemp("trained") / "run"
    made = command_server.run("train", TINY_CATCH, *SETS, "--run-dir", run, "--plain", path=[str(packages)])
    assert made.code == 0, made.err
    return run


@pytest.fixture
def mine(trained: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(trained, tmp_path / "run", symlinks=True))


def test_provenance_has_the_version_of_the_package_that_a_run_uses(trained: Path) -> None:
    assert json.loads((trained / "provenance.json").read_text())["versions"]["other-agents"] == "1.0"


def test_resume_with_another_version_of_the_package_says_that_it_may_differ(
    command_server: CommandServer, mine: Path, tmp_path: Path
) -> None:
    newer = install(tmp_path / "newer", version="2.0")
    done = command_server.run("resume", mine, "--frames", "100", "--plain", path=[str(newer)])
    assert done.code == 0, done.err
    assert "may differ from an uninterrupted one: other-agents 2.0, it began with 1.0" in done.output


@pytest.mark.parametrize(
    "words", [("resume", "--frames", "100"), ("eval", "--episodes", "1")], ids=lambda words: words[0]
)
def test_network_of_another_version_that_does_not_fit_is_not_called_damage(
    command_server: CommandServer, mine: Path, tmp_path: Path, words: tuple[str, ...]
) -> None:
    wider = install(tmp_path / "wider", version="2.0", module=MODULE.replace("(8, 8, 4)", "(16, 8, 4)"))
    done = command_server.run(words[0], mine, *words[1:], path=[str(wider)])
    assert done.code == 2
    assert "agent.pt: " in done.err
    assert "the code of other-agents (now 2.0, then 1.0) has changed" in done.err
    assert "start a new run" not in done.err


@pytest.mark.parametrize(
    "words", [("resume", "--frames", "100"), ("eval", "--episodes", "1")], ids=lambda words: words[0]
)
def test_package_of_a_run_that_is_not_installed_is_named(
    command_server: CommandServer, trained: Path, words: tuple[str, ...]
) -> None:
    done = command_server.run(words[0], trained, *words[1:])
    assert done.code == 2
    assert "the run began with other-agents 1.0, which is not installed" in done.err


def test_wrong_name_is_answered_with_the_names_that_packages_add(dqn: Callable[..., Finished]) -> None:
    refused = dqn("spec", "check", TINY_CATCH, "--set", "network.kind=narow")
    assert '"impala", "narrow", or a name that an installed package adds' in refused.err


def test_resume_with_other_code_of_the_same_version_says_that_it_may_differ(
    command_server: CommandServer, mine: Path, tmp_path: Path
) -> None:
    changed = install(tmp_path / "changed", module=MODULE.replace(".log()", ".log() * 2"))
    done = command_server.run("resume", mine, "--frames", "100", "--plain", path=[str(changed)])
    assert done.code == 0, done.err
    assert "may differ from an uninterrupted one: code of other-agents " in done.output


def test_resume_with_the_same_package_is_exact(dqn: Callable[..., Finished], mine: Path) -> None:
    done = dqn("resume", mine, "--frames", "100", "--plain")
    assert done.code == 0, done.err
    assert "may differ" not in done.output


FAULTY = {
    "import": ("import no_such_module", "No module named 'no_such_module' ({module}, line 1)"),
    "attribute": ("", "has no attribute 'NarrowTorso'"),
    "object": ("NarrowTorso = 3", "found int, expected a function or a class"),
    "result": ("def NarrowTorso(**settings): return 3", "found int, expected a Torso"),
    "arguments": ("def NarrowTorso(size): pass", "got an unexpected keyword argument"),
    "call": ("import torch\ndef NarrowTorso(**settings): torch.nn.Linear('a', 1)", "({module}, line 2);"),
}
"""A fault: the module, and what the message says of it."""


@pytest.mark.parametrize(("module", "problem"), FAULTY.values(), ids=FAULTY)
def test_faulty_network_is_an_error_that_names_entry_point_and_package(
    command_server: CommandServer, tmp_path: Path, module: str, problem: str
) -> None:
    faulty = install(tmp_path / "faulty", module=module)
    done = command_server.run("train", TINY_CATCH, *SETS, cwd=tmp_path, path=[str(faulty)])
    assert done.code == 2
    entry = (
        "network 'narrow': the entry point narrow = other_agents:NarrowTorso of other-agents 1.0 cannot be"
    )
    assert entry in done.err
    assert problem.format(module=faulty / "other_agents.py") in done.err
    assert not (tmp_path / "outputs").exists()


def test_loss_that_is_none_is_an_error_that_names_the_package(
    command_server: CommandServer, tmp_path: Path
) -> None:
    faulty = install(tmp_path / "faulty", module="def log_cosh(target_rule, settings): return 3")
    done = command_server.run("train", TINY_CATCH, "--set", "learner.loss=log_cosh", path=[str(faulty)])
    assert done.code == 2
    assert "log_cosh of other-agents 1.0 cannot be used: TypeError: found int, expected a LossFn" in done.err


FLOAT64 = """
from dataclasses import replace

from atari_dqn.agent.value_kinds import huber


def log_cosh(target_rule, settings):
    loss = huber(target_rule, settings)

    def in_float64(*arguments):
        found = loss(*arguments)
        metrics = {name: value.double() for name, value in found.metrics.items()}
        return replace(found, loss=found.loss.double(), priorities=found.priorities.double(), metrics=metrics)

    return in_float64
"""
"""A loss whose tensors are float64, as of one that computes in it."""


def test_loss_in_float64_trains(command_server: CommandServer, tmp_path: Path) -> None:
    packages = install(tmp_path / "packages", module=MODULE + FLOAT64)
    sets = (*SETS, "--set", "toggles.prioritized=true", "--run-dir", tmp_path / "run")
    done = command_server.run("train", TINY_CATCH, *sets, path=[str(packages)])
    assert done.code == 0, done.err


def test_name_that_two_packages_add_is_an_error_that_names_both(
    command_server: CommandServer, packages: Path, tmp_path: Path
) -> None:
    second = install(tmp_path / "second", name="more-agents", version="0.3")
    done = command_server.run("train", TINY_CATCH, *SETS, path=[str(packages), str(second)])
    assert done.code == 2
    assert "other-agents 1.0" in done.err
    assert "more-agents 0.3" in done.err


@pytest.mark.parametrize(("kind", "code"), [("nature", 2), ("dopamine", 0)])
def test_name_of_ours_that_a_package_adds_is_an_error_only_where_it_is_used(
    command_server: CommandServer, tmp_path: Path, kind: str, code: int
) -> None:
    entry_points = "[atari_dqn.networks]\nnature = other_agents:NarrowTorso\n"
    shadowing = install(tmp_path / "shadowing", module="import no_such_module", entry_points=entry_points)
    sets = ("--set", f"network.kind={kind}", *SETS[4:])
    done = command_server.run(
        "train", TINY_CATCH, *sets, "--run-dir", tmp_path / "run", path=[str(shadowing)]
    )
    assert done.code == code
    message = (
        "network 'nature' is built in, but the entry point nature = other_agents:NarrowTorso of other-agents"
    )
    assert (message in done.err) == (code == 2)


def test_name_of_ours_is_allowed_without_a_search_of_the_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    def search(group: str) -> tuple[str, ...]:
        raise AssertionError(group)

    monkeypatch.setattr(keys, "entry_point_names", search)
    assert keys.KEYS["network.kind"].allows("nature")
