"""System calls that fail, and disks that lose what was not flushed, under real commands.

A sample; `benchmarks/disk_faults.py` has them all.
"""

import random
from collections.abc import Iterator

import pytest
from failing_calls import Commands, FaultTrials, some_faults
from power_failures import Recorded

pytestmark = pytest.mark.slow

FAULTS = 14
"""One of each kind of call in a new run."""
POWER_FAILURES = 12


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Commands]:
    with Commands(tmp_path_factory.mktemp("commands")) as started:
        yield started


@pytest.fixture(scope="module")
def trials(commands: Commands, tmp_path_factory: pytest.TempPathFactory) -> FaultTrials:
    return FaultTrials(commands, tmp_path_factory.mktemp("trials"))


@pytest.fixture(scope="module")
def recorded(commands: Commands, tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return Recorded(commands, tmp_path_factory.mktemp("recorded"))


@pytest.mark.parametrize("phase", ["train", "resume"])
def test_command_names_the_file_whose_call_failed_or_goes_on_and_the_next_resume_is_exact(
    trials: FaultTrials, phase: str
) -> None:
    faults = some_faults({phase: trials.counts(phase)}, FAULTS, random.Random(1))
    assert {str(fault): found for fault in faults if (found := trials.complaints(fault))} == {}


def test_recording_of_a_run_rebuilds_its_folder(recorded: Recorded) -> None:
    whole = recorded.failures()[-1].files
    tables = {name for name, (kind, data) in whole.items() if name.endswith(".csv") and data}
    assert {f"run/{name}" for name in recorded.expected if name.endswith(".csv")} <= tables


def test_run_on_a_disk_that_loses_what_was_not_flushed_has_what_it_said_was_saved_and_resumes_exactly(
    recorded: Recorded,
) -> None:
    failures = recorded.failures()
    picked = [failures[index] for index in random.Random(1).sample(range(len(failures)), POWER_FAILURES)]
    complaints = {(failure.calls, failure.disk): recorded.complaints(failure) for failure in picked}
    assert {cut: found for cut, found in complaints.items() if found} == {}
