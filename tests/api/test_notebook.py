"""The notebook and the path of a stranger run, the second without its installation."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOK = json.loads((ROOT / "docs" / "from_run_to_figure.ipynb").read_text())


@pytest.mark.slow
def test_the_notebook_makes_its_figure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for cell in NOTEBOOK["cells"]:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), "the notebook", "exec"), names)
    assert (tmp_path / "catch.png").read_bytes().startswith(b"\x89PNG")


def test_the_notebook_is_stored_without_outputs() -> None:
    cells = [cell for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"]
    assert [(cell["outputs"], cell["execution_count"]) for cell in cells] == [([], None)] * len(cells)


@pytest.mark.slow
def test_the_strangers_path_runs(tmp_path: Path) -> None:
    script = (ROOT / "scripts" / "strangers_path.sh").read_text()
    installing = r"python3 -m venv.*?^pip install[^\n]*\n"
    shortened, count = re.subn(installing, "", script, flags=re.DOTALL | re.MULTILINE)
    assert count == 1
    (tmp_path / "bin").mkdir()
    for name, command in {"dqn": "-m atari_dqn", "python": ""}.items():
        path = tmp_path / "bin" / name
        path.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {command} "$@"\n')
        path.chmod(0o755)
    search = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": search, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        ["bash", "-c", shortened, "path", str(ROOT)],
        capture_output=True, text=True, check=False, env=environment, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "the same returns, game by game" in done.stdout
