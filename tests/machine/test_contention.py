"""Contention for processor cores, computed from invented counters and measured with busy processes."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import psutil
import pytest

from atari_dqn.machine.contention import (
    Contention,
    CoreTimes,
    contention,
    read_core_times,
    why_waiting_is_slow,
)


def times(
    at: float,
    *,
    used: float,
    own: float,
    threads: Mapping[int, tuple[float, float]] | None = None,
    cores: int = 2,
    allowed: int | None = None,
) -> CoreTimes:
    return CoreTimes(
        at=at, usable_cores=cores, allowed_cores=allowed or cores, used=used, own=own, threads=threads or {}
    )


def shared(*, others: float, waiting: float = 0.0, cores: int = 2) -> Contention:
    return Contention(usable_cores=cores, others_cores=others, waiting_share=waiting)


def test_use_by_others_is_total_use_without_own() -> None:
    found = contention(times(100, used=50.0, own=20.0), times(110, used=68.0, own=28.0))
    assert found is not None
    assert found.others_cores == pytest.approx(1.0)


def test_use_by_others_is_never_negative() -> None:
    found = contention(times(100, used=50.0, own=20.0), times(110, used=59.9, own=30.0))
    assert found is not None
    assert found.others_cores == 0.0


@pytest.mark.parametrize(("used", "others"), [(20, 0.0), (60, 0.0), (62, 2.0)])
def test_other_programs_first_use_the_cores_beyond_the_limit_of_a_container(used: int, others: float) -> None:
    span = (times(at, used=used * at, own=0, cores=4, allowed=64) for at in (0, 10))
    found = contention(*span)
    assert found is not None
    assert found.others_cores == pytest.approx(others)


def test_waiting_share_is_relative_to_runnable_time() -> None:
    before = times(100, used=0, own=0, threads={1: (5.0, 1.0), 2: (4.0, 0.0)})
    after = times(110, used=0, own=0, threads={1: (11.0, 3.0), 2: (6.0, 2.0)})
    found = contention(before, after)
    assert found is not None
    assert found.waiting_share == pytest.approx(4 / 12)


def test_threads_that_start_or_end_in_between_are_ignored() -> None:
    before = times(100, used=0, own=0, threads={1: (5.0, 1.0), 2: (90.0, 9.0)})
    after = times(110, used=0, own=0, threads={1: (9.0, 2.0), 3: (0.1, 7.0)})
    found = contention(before, after)
    assert found is not None
    assert found.waiting_share == pytest.approx(1 / 5)


def test_waiting_share_is_zero_if_the_system_does_not_record_it() -> None:
    found = contention(times(100, used=0, own=0), times(110, used=20, own=0))
    assert found is not None
    assert (found.waiting_share, found.slows(2)) == (0.0, False)


def test_span_of_a_tenth_of_a_second_is_too_short() -> None:
    assert contention(times(100.0, used=0, own=0), times(100.1, used=0.2, own=0)) is None


@pytest.mark.parametrize(
    ("threads", "variables", "is_slow"),
    [
        (2, {}, True),
        (1, {}, False),
        (2, {"OMP_WAIT_POLICY": "passive"}, False),
        (2, {"GOMP_SPINCOUNT": "300000"}, False),  # the user's own choice
    ],
)
def test_threads_that_spin_although_the_user_did_not_ask_for_it_are_reported(
    threads: int, variables: dict[str, str], is_slow: bool
) -> None:
    assert (why_waiting_is_slow(threads, variables) is not None) is is_slow


@pytest.mark.parametrize(
    ("others", "waiting", "cores", "threads", "slows"),
    [
        (1.0, 0.34, 2, 2, True),  # one busy program, two threads on two cores
        (1.0, 0.02, 2, 1, False),  # the same, and one thread that has a core of its own
        (1.0, 0.04, 16, 8, False),  # one busy program on a large machine
        (12.0, 0.40, 16, 8, True),  # many
        (0.05, 0.30, 2, 2, False),  # nothing else runs: its own threads and workers took turns for a while
        (0.05, 0.60, 2, 64, True),  # a container grants two cores to 64 threads
        (1.0, 0.10, 2, 2, False),  # a program of low priority takes what is left
    ],
)
def test_run_is_slowed_if_others_use_cores_and_its_threads_wait(
    others: float, waiting: float, cores: int, threads: int, slows: bool
) -> None:
    assert shared(others=others, waiting=waiting, cores=cores).slows(threads) is slows


@pytest.mark.parametrize(
    ("others", "cores", "threads", "too_few"),
    [
        (1.0, 2, 2, True),
        (1.0, 2, 1, False),
        (0.4, 2, 2, False),
        (0.0, 2, 2, False),
        (0.1, 2, 64, False),  # no other program runs
        (1.0, 16, 15, False),
        (3.0, 16, 16, True),
    ],
)
def test_others_leave_too_few_cores_if_threads_and_their_use_exceed_the_cores(
    others: float, cores: int, threads: int, too_few: bool
) -> None:
    assert shared(others=others, cores=cores).leaves_too_few(threads) is too_few


@pytest.mark.parametrize(
    ("others", "cores", "threads"), [(1.0, 2, 1), (0.9, 2, 1), (2.0, 2, 1), (1.0, 16, 15), (3.5, 16, 12)]
)
def test_suitable_threads_are_the_cores_that_others_leave(others: float, cores: int, threads: int) -> None:
    assert shared(others=others, cores=cores).suitable_threads == threads


def test_use_by_others_is_formatted_with_the_number_of_cores() -> None:
    assert str(shared(others=1.04)) == "other programs use 1.0 of 2 cores"


def test_own_work_does_not_count_as_use_by_others() -> None:
    before = read_core_times()
    deadline = time.process_time() + 0.5
    while time.process_time() < deadline:
        pass
    after = read_core_times()
    assert after.own - before.own >= 0.4
    assert after.used - before.used >= 0.4


class Core(NamedTuple):
    user: float
    idle: float
    iowait: float


@pytest.mark.parametrize(("numbers", "used"), [({1}, 4.0), ({0, 1}, 7.0), ({8, 9}, 7.0), ({1, 9}, 7.0)])
def test_use_is_that_of_all_listed_cores_if_one_of_this_process_is_not_listed(
    numbers: set[int], used: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    cores = [Core(user=3.0, idle=5.0, iowait=1.0), Core(user=4.0, idle=5.0, iowait=1.0)]
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: numbers, raising=False)
    monkeypatch.setattr(psutil, "cpu_times", lambda percpu: cores)
    assert read_core_times().used == used


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts how long threads wait")
@pytest.mark.skipif(os.nice(0) > 18, reason="there is no lower priority")
def test_threads_of_low_priority_are_left_out() -> None:
    ended = threading.Event()
    threads = [threading.Thread(target=ended.wait, daemon=True) for _ in range(2)]
    for thread in threads:
        thread.start()
    normal, low = (thread.native_id for thread in threads)
    os.setpriority(os.PRIO_PROCESS, low, 19)
    found = read_core_times().threads
    ended.set()
    assert (normal in found, low in found) == (True, False)


@pytest.mark.slow
def test_running_and_ended_children_count_as_own() -> None:
    before = read_core_times().own
    busy = "import time\nwhile time.process_time() < 1: pass\ninput()"
    with subprocess.Popen([sys.executable, "-c", busy], stdin=subprocess.PIPE) as child:
        deadline = time.monotonic() + 60
        while read_core_times().own - before < 0.8:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        child.communicate(b"\n")
    assert read_core_times().own - before >= 0.8


ORPHANS = """
import os, subprocess, sys
busy = "import time; [0 for _ in iter(lambda: time.process_time() < 60, False)]"
for _ in 2 * list(os.sched_getaffinity(0)):
    print(subprocess.Popen([sys.executable, "-c", busy], stdout=subprocess.DEVNULL).pid)
"""


@pytest.fixture
def busy_programs() -> Iterator[None]:
    """Start two busy programs for each usable core; their parent has ended, they are no children of ours."""
    done = subprocess.run([sys.executable, "-c", ORPHANS], stdout=subprocess.PIPE, text=True, check=True)
    yield
    for pid in done.stdout.split():
        os.kill(int(pid), signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts how long threads wait")
def test_busy_programs_on_every_core_slow_a_thread_down(busy_programs: None) -> None:
    before, end = read_core_times(), time.monotonic() + 5
    while time.monotonic() < end:
        pass
    found = contention(before, read_core_times())
    assert found is not None
    assert found.slows(1)
    assert found.leaves_too_few(1)
