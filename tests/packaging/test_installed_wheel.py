"""A wheel, in an environment where nothing else is, trains from a folder outside of the checkout."""

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from atari_dqn.spec.shipped import shipped_specs

ROOT = Path(__file__).parents[2]
WHEEL = os.environ.get("ATARI_DQN_WHEEL")
"""A wheel that was built before; without it, the tests build one, which takes minutes."""
pytestmark = [
    pytest.mark.thorough,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(shutil.which("g++") is None, reason="no compiler on this machine"),
]


def run(*words: str | Path, folder: Path | None = None, env: dict[str, str] | None = None) -> str:
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=folder, env=env)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if WHEEL:
        return Path(WHEEL)
    out = tmp_path_factory.mktemp("dist")
    run(sys.executable, ROOT / "scripts" / "build_wheel.py", "--out", out)
    return next(out.glob("*.whl"))


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with the wheel, and what pip installs for it."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=True)
    pip = (folder / "bin" / "python", "-I", "-m", "pip", "install", "--only-binary", ":all:")
    run(*pip, "-c", ROOT / "constraints.txt", wheel)
    return folder


def dqn(environment: Path, folder: Path, *arguments: str) -> str:
    """Run a command of the installed program, with no other program on the PATH."""
    variables = {"PATH": str(environment / "bin"), "HOME": str(folder), "COLUMNS": "200"}
    return run(environment / "bin" / "dqn", *arguments, folder=folder, env=variables)


def test_wheel_is_for_every_version_of_python(wheel: Path) -> None:
    assert "-py3-none-manylinux_" in wheel.name


def test_kernels_are_found_without_a_compiler(environment: Path, tmp_path: Path) -> None:
    said = " ".join(dqn(environment, tmp_path, "doctor").split())
    assert "compiled, for learning on a CPU: fp32 vectors" in said
    assert "no g++" in said


def test_shipped_spec_trains_by_its_name(environment: Path, tmp_path: Path) -> None:
    dqn(environment, tmp_path, "train", "catch_smoke", "--plain")
    assert (tmp_path / "outputs" / "catch_smoke_seed1" / "summary.json").is_file()


def test_every_shipped_spec_is_inside(environment: Path, tmp_path: Path) -> None:
    code = "from atari_dqn.spec.shipped import shipped_specs; print(*sorted(shipped_specs()))"
    found = run(environment / "bin" / "python", "-I", "-c", code, folder=tmp_path)
    assert found.split() == sorted(shipped_specs())
