"""Installations that are not editable: without a compiler, with several, and what their archives hold."""

import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from atari_dqn.fast.cpu.library import FOLDER

REPOSITORY = FOLDER.parents[2]
FILES = ("setup.py", "pyproject.toml", "MANIFEST.in", "README.md", "LICENSE")
pytestmark = pytest.mark.timeout(1800)


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A copy of what an installation needs, without anything compiled."""
    folder = tmp_path / "copied"
    folder.mkdir()
    for name in FILES:
        shutil.copy(REPOSITORY / name, folder)
    shutil.copytree(REPOSITORY / "runs", folder / "runs")
    without = shutil.ignore_patterns("*.so", "__pycache__")
    shutil.copytree(REPOSITORY / "atari_dqn", folder / "atari_dqn", ignore=without)
    return folder


def python(*words: str, cwd: Path, **variables: str) -> str:
    done = subprocess.run(
        [sys.executable, *words],
        cwd=cwd,
        env=os.environ | variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def install(copied: Path, c: str, cxx: str) -> Path:
    """Install a copy with the packages that are here; return the folder it is in."""
    target = copied.parent / "installed"
    options = ("--no-deps", "--no-build-isolation", "--no-index", "--target", str(target))
    python("-m", "pip", "install", "-q", *options, ".", cwd=copied, CC=c, CXX=cxx)
    return target


def kernels_according_to_doctor(installed: Path) -> str:
    """Run `dqn doctor` and return its check of the kernels as one line."""
    said = python("-P", "-m", "atari_dqn", "doctor", cwd=installed.parent, PYTHONPATH=str(installed))
    _, _, text = said.partition(" kernels ")
    return " ".join(text.partition(" OpenCV ")[0].split())


@pytest.mark.slow
def test_installation_without_a_compiler_works_and_says_what_is_missing(copied: Path) -> None:
    installed = install(copied, "/bin/false", "/bin/false")
    assert kernels_according_to_doctor(installed).startswith("not all compiled: PyTorch computes the rest")


@pytest.mark.slow
def test_installed_package_has_no_sources_of_kernels_that_it_was_not_compiled_of(copied: Path) -> None:
    installed = install(copied, "/bin/false", "/bin/false")
    assert list(installed.rglob("*.?pp")) == []


@pytest.mark.slow
def test_source_archive_has_every_source_of_the_kernels(copied: Path) -> None:
    python("setup.py", "-q", "sdist", cwd=copied)
    (archive,) = (copied / "dist").glob("*.tar.gz")
    with tarfile.open(archive) as files:
        names = {Path(name).name for name in files.getnames()}
    assert {path.name for path in FOLDER.glob("*.?pp")} <= names


@pytest.mark.thorough
@pytest.mark.parametrize(("c", "cxx"), [("gcc", "g++"), ("gcc-11", "g++-11"), ("clang", "clang++")])
def test_installation_by_any_compiler_has_all_kernels(c: str, cxx: str, copied: Path) -> None:
    if shutil.which(cxx) is None:
        pytest.skip(f"no {cxx} on this machine")
    said = kernels_according_to_doctor(install(copied, c, cxx))
    assert "compiled, for learning on a CPU: " in said
