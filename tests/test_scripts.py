"""Benchmarks and scripts: they import, the package has the names they use, and their page lists them."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BENCHMARKS = ROOT / "benchmarks"


@pytest.fixture(scope="module")
def found():
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("imported_scripts.py")], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
def test_every_script_imports_and_uses_names_that_the_package_has(found):
    assert found["missing"] == []


@pytest.mark.slow
def test_packages_that_training_imports_travel_to_a_gpu_machine(found):
    assert found["missing_on_a_gpu_machine"] is None


def test_wheels_for_a_gpu_machine_have_the_versions_that_tests_pass_with():
    wheels = set((BENCHMARKS / "gpu_wheels.txt").read_text().splitlines())
    assert wheels <= set((ROOT / "constraints.txt").read_text().splitlines())


def test_the_page_of_benchmarks_names_every_script():
    named = set(re.findall(r"`([\w.]+\.(?:py|sh))\b", (BENCHMARKS / "README.md").read_text()))
    assert {path.name for path in BENCHMARKS.glob("*.[ps][yh]")} - named == set()


def test_every_benchmark_with_a_result_says_where_and_when():
    texts = {path.name: path.read_text() for path in BENCHMARKS.glob("*.py")}
    results = [name for name, text in texts.items() if '"--out"' in text]
    assert "emulation.py" in results
    assert [name for name in results if "circumstances(" not in texts[name]] == []
