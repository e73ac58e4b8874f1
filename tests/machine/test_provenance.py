import json
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

import atari_dqn
from atari_dqn import WAIT_VARIABLES
from atari_dqn.machine.hardware import Hardware
from atari_dqn.run.provenance import git_state, provenance, versions


def git(repository: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    result = subprocess.run(
        ["git", *identity, *arguments], cwd=repository, check=True, capture_output=True, text=True
    )
    return result.stdout.strip()


def checkout(root: Path) -> Path:
    package = root / "package"
    package.mkdir()
    (package / "module.py").write_text("x = 1\n")
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-q", "-m", "first")
    return package


def test_record_has_every_field_and_is_json(laptop: Hardware, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in WAIT_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OMP_WAIT_POLICY", "passive")
    record = provenance(
        command_line=["dqn", "train"], track="A*", deviations=["env.num_envs"],
        game="pong", rom_md5="60e0ea3c",
        protocols={"abc": {"epsilon": 0.05}}, device="cpu", torch_threads=2,
        kernels=("fp32 vectors",), hardware=laptop, packages={"other-agents": "1.0"},
        now=lambda: datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
    )  # fmt: skip
    stored = json.loads(json.dumps(record))
    assert {key: stored[key] for key in stored.keys() - {"versions", "git", "hardware"}} == {
        "started": "2026-01-02T03:04:05+00:00",
        "command_line": ["dqn", "train"],
        "track": {"label": "A*", "deviations": ["env.num_envs"]},
        "game": {"id": "pong", "rom_md5": "60e0ea3c"},
        "protocols": {"abc": {"epsilon": 0.05}},
        "device": "cpu",
        "torch_threads": 2,
        "openmp": {"OMP_WAIT_POLICY": "passive"},
        "kernels": ["fp32 vectors"],
    }
    assert stored["hardware"]["cpu_model"] == "Example"
    assert stored["versions"] == {**versions(), "other-agents": "1.0"}


def test_versions_name_everything_that_can_change_numbers() -> None:
    found = versions()
    assert found["atari_dqn"] == atari_dqn.__version__
    assert set(found) == {
        "atari_dqn", "python", "platform", "torch", "numpy", "ale-py", "gymnasium", "opencv-python-headless",
    }  # fmt: skip
    assert None not in found.values()


def test_clean_checkout_gives_its_commit(tmp_path: Path) -> None:
    package = checkout(tmp_path)
    assert git_state(package) == {"commit": git(tmp_path, "rev-parse", "HEAD"), "dirty": False}


def test_changed_package_is_dirty(tmp_path: Path) -> None:
    package = checkout(tmp_path)
    (package / "module.py").write_text("x = 2\n")
    state = git_state(package)
    assert state is not None
    assert state["dirty"] is True


def test_repository_further_up_is_not_the_packages(tmp_path: Path) -> None:
    checkout(tmp_path)
    installed = tmp_path / "venv" / "package"
    installed.mkdir(parents=True)
    assert git_state(installed) is None
