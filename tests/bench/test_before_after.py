"""The comparison with an earlier version, which a program in place of `dqn` stands for."""

import json
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
from before_after import dqn

PRINTS_HOW_THREADS_WAIT = """
import json, os

def main():
    print(json.dumps({name: os.environ.get(name) for name in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")}))
"""


def test_an_earlier_version_sets_by_itself_how_its_threads_wait(tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_WAIT_POLICY", "passive")  # as this version does when it is imported
    monkeypatch.setenv("GOMP_SPINCOUNT", "2000")
    (tmp_path / "atari_dqn").mkdir()
    (tmp_path / "atari_dqn" / "__init__.py").touch()
    (tmp_path / "atari_dqn" / "cli.py").write_text(PRINTS_HOW_THREADS_WAIT)
    assert json.loads(dqn(tmp_path)) == {"OMP_WAIT_POLICY": None, "GOMP_SPINCOUNT": None}
