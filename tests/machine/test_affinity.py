"""Cores to which processes are bound are counted."""

import os
import subprocess
from collections.abc import Iterator

import pytest

from atari_dqn.machine.affinity import bound_processes

CORES = sorted(os.sched_getaffinity(0))
pytestmark = pytest.mark.skipif(len(CORES) < 2, reason="needs two cores")


@pytest.fixture
def bound() -> Iterator[int]:
    """Bind a process to the last core."""
    with subprocess.Popen(["sleep", "600"]) as process:
        os.sched_setaffinity(process.pid, {CORES[-1]})
        yield CORES[-1]
        process.kill()


def test_a_process_that_is_bound_to_a_core_counts_there(bound: int) -> None:
    before = bound_processes(CORES)
    with subprocess.Popen(["sleep", "600"]) as another:
        os.sched_setaffinity(another.pid, {bound})
        after = bound_processes(CORES)
        another.kill()
    assert after[bound] > before[bound] > 0


def test_a_process_that_may_use_all_of_the_cores_counts_nowhere(bound: int) -> None:
    assert bound_processes([bound]) == {}
