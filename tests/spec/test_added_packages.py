"""Packages that add parts of specs are recorded with their code, and those that are missing are found."""

import shutil
import sys
from importlib.metadata import distributions
from pathlib import Path

import pytest

from atari_dqn.registry import InstalledEntry
from atari_dqn.spec import added_packages
from atari_dqn.spec.added_packages import missing_packages, packages_here, unrecorded_code

ENTRY_POINTS = "[atari_dqn.networks]\nnarrow = other_agents.torsos:Narrow\n"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the code of an installed package with a network."""
    info, code = tmp_path / "other_agents-1.0.dist-info", tmp_path / "other_agents"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: other-agents\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    code.mkdir()
    (code / "__init__.py").write_text("raise ImportError\n")
    (code / "torsos.py").write_text("WIDTH = 4\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])

    entries = next(distributions(name="other-agents")).entry_points
    installed = [InstalledEntry.of(entry) for entry in entries]
    monkeypatch.setattr(
        added_packages, "entry_points_of", lambda group: installed if group == "atari_dqn.networks" else []
    )
    added_packages.code_digest.cache_clear()
    return code


def test_digest_of_the_code_changes_with_a_module_that_the_entry_point_does_not_name(package: Path) -> None:
    before = packages_here()
    (package / "layers.py").write_text("DEPTH = 2\n")
    added_packages.code_digest.cache_clear()  # as in another process
    assert before.keys() == {"other-agents", "code of other-agents"}
    assert packages_here()["code of other-agents"] != before["code of other-agents"]


def test_package_stays_the_one_that_the_process_began_with_when_it_is_uninstalled(package: Path) -> None:
    before = packages_here()
    shutil.rmtree(package)
    shutil.rmtree(package.parent / "other_agents-1.0.dist-info")
    assert packages_here() == before


def test_digest_of_the_code_does_not_depend_on_its_place(package: Path) -> None:
    before = packages_here()
    (package / "notes.txt").write_text("no code")
    added_packages.code_digest.cache_clear()
    assert packages_here() == before == {"other-agents": "1.0", "code of other-agents": "63c42ed4dc59"}


def test_run_that_began_before_code_was_recorded_is_not_compared_with_it() -> None:
    packages = {"other-agents": "1.0", "code of other-agents": "0aae3e4f3914"}
    assert unrecorded_code(packages, {"other-agents": "1.0"}) == {"code of other-agents"}
    assert unrecorded_code(packages, packages) == set()


def test_missing_packages_are_those_that_are_recorded_and_not_installed() -> None:
    recorded = {"atari_dqn": "0.1", "python": "3.9", "platform": "L", "torch": "2.0", "ale-py": None}
    assert missing_packages({**recorded, "no-such-agents": "1.0", "code of no-such-agents": "0a"}) == [
        "no-such-agents 1.0"
    ]
