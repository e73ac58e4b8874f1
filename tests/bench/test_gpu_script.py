"""The script that measures on a GPU, here without a stage: what it reports is of this call."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "gpu.sh"


@pytest.mark.slow
def test_report_has_no_tests_of_an_earlier_call(tmp_path: Path) -> None:
    (tmp_path / "tests.log").write_text("105 passed\n")
    python = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    variables = {"OUT": str(tmp_path), "STAGES": "none", "WHEELS": str(tmp_path / "absent"), "PATH": python}
    subprocess.run([SCRIPT], env={**os.environ, **variables}, check=True, stdout=subprocess.DEVNULL)
    assert json.loads((tmp_path / "gpu.json").read_text())["tests"] == []
