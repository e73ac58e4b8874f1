"""Each fault of the ledger is put back into a copy of the package, and a test of its row must then fail."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from ledger import PACKAGE, Fault, load_ledger

ROWS = [row for row in load_ledger() if row.faults]
FAULTS = {f"{row.id}: {fault.what}": fault for row in ROWS for fault in row.faults}
SLOW = {
    "D01", "D03", "D04", "D05", "D07", "D10", "D14", "D15", "D18", "D19", "D-ok.double", "D-ok.discount",
    "M01", "M04", "M05", "M07", "M08", "M10", "W03", "W07", "W11", "P05", "P13", "H02", "H05", "H10",
}  # fmt: skip
"""Rows whose first fault the slow tests put back, one or two for each part of the package; the thorough tests
put back every other."""
TESTS_FAILED = 1
"""pytest's exit code where a test failed; where it could not be collected or run it is another."""

Run = Callable[[str, Path], tuple[int, str]]


@pytest.fixture(scope="module")
def run_against() -> Iterator[Run]:
    """Run a test against the package in a folder; return pytest's exit code and report."""
    script = Path(__file__).with_name("faulty.py")
    with subprocess.Popen(
        [sys.executable, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:

        def run(node: str, folder: Path) -> tuple[int, str]:
            report = folder / "report.txt"
            print(json.dumps([str(folder), str(report), node]), file=server.stdin, flush=True)
            return int(server.stdout.readline()), report.read_text()

        yield run
        server.stdin.close()


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    shutil.copytree(PACKAGE, tmp_path / PACKAGE.name)  # with its bytecode, which stays valid
    return tmp_path


def marks(name: str) -> pytest.MarkDecorator:
    among_the_slow = {f"{row.id}: {row.faults[0].what}" for row in ROWS if row.id in SLOW}
    return pytest.mark.slow if name in among_the_slow else pytest.mark.thorough


@pytest.mark.parametrize("name", [pytest.param(name, marks=marks(name)) for name in FAULTS])
def test_fault_is_caught(name: str, copy: Path, run_against: Run) -> None:
    fault: Fault = FAULTS[name]
    fault.put_into(copy / PACKAGE.name)
    code, report = run_against(fault.caught_by, copy)
    assert code == TESTS_FAILED, f"{fault.caught_by} lived with it:\n{report}"


def test_rows_of_the_slow_tests_have_faults() -> None:
    assert {row.id for row in ROWS} >= SLOW


@pytest.mark.slow
def test_copy_without_a_fault_passes(copy: Path, run_against: Run) -> None:
    code, report = run_against("test_learning.py", copy)
    assert code == 0, report
