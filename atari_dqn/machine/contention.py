"""Measure whether other programs use the processor cores that a run's threads need.

Two measurements are combined. The counters of the cores show how much other programs use them, but not
whether any thread had to wait: one other program does not slow down a run on a machine with 16 cores. The
Linux scheduler records how long each thread was ready to run but had no core; threads of the same run can be
the cause. If both are large, the threads of a parallel computation wait for the thread that has no core, and
training slows down several times. The load average is not used: it lags by a minute and also counts programs
that wait for disks.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil  # type: ignore[import-untyped]

from atari_dqn.machine.cgroup import ControlGroups
from atari_dqn.machine.hardware import usable_cores

_TASKS = Path("/proc/self/task")
_NANOSECOND = 1e-9
_SHORTEST_SECONDS = 0.2
"""Shortest span that is measured; the counters of the cores advance in hundredths of a second."""
_SPARE_CORES = 0.5
_USED_BY_OTHERS_CORES = 0.25
_WAITING_SHARE = 0.15


@dataclass(frozen=True, kw_only=True)
class CoreTimes:
    """Counters of processor time at one moment `at`, in seconds."""

    at: float
    usable_cores: int
    """Cores that this process may use at once; a container may allow fewer than the process may run on."""
    allowed_cores: int
    """Cores that this process may run on."""
    used: float
    """Time used by all programs together, on these cores."""
    own: float
    """Time used by this process and the processes it started."""
    threads: Mapping[int, tuple[float, float]]
    """For each thread of this process, the time it ran and the time it was ready to run but had no core.

    Empty on systems other than Linux, which do not record it. Threads of low priority are left out, because
    they are meant to wait.
    """


@dataclass(frozen=True, kw_only=True)
class Contention:
    """How processor time was shared between this process and other programs over a span of time."""

    usable_cores: int
    others_cores: float
    """Cores that other programs used on average, without those that this process cannot use at once."""
    waiting_share: float
    """Share of the time in which this process's threads were ready to run but had no core."""

    def leaves_too_few(self, threads: int) -> bool:
        """Return whether this many threads, started now, would have to share cores with other programs."""
        return self.others_cores + threads > self.usable_cores + _SPARE_CORES and self._others_are_active

    def slows(self, threads: int) -> bool:
        """Return whether this process, if it computes with this number of threads, was slowed down."""
        is_crowded = self._others_are_active or threads > self.usable_cores
        return self.waiting_share > _WAITING_SHARE and is_crowded

    @property
    def suitable_threads(self) -> int:
        """Number of cores that other programs leave free, at least one."""
        return max(1, int(self.usable_cores - self.others_cores + _USED_BY_OTHERS_CORES))

    @property
    def _others_are_active(self) -> bool:
        return self.others_cores >= _USED_BY_OTHERS_CORES

    def __str__(self) -> str:
        """Return the use by other programs as text for the user."""
        return f"other programs use {self.others_cores:.1f} of {self.usable_cores} cores"


def read_core_times() -> CoreTimes:
    """Read the counters of processor time now."""
    used, allowed_cores = _use_of_cores()
    return CoreTimes(
        at=time.monotonic(),
        usable_cores=usable_cores(ControlGroups()),
        allowed_cores=allowed_cores,
        used=used,
        own=_own_seconds(),
        threads=dict(_thread_times()),
    )


def contention(before: CoreTimes, after: CoreTimes) -> Contention | None:
    """Compute how processor time was shared between two moments; None if they are too close to measure."""
    elapsed = after.at - before.at
    if elapsed < _SHORTEST_SECONDS:
        return None
    lasting = before.threads.keys() & after.threads.keys()
    ran, waited = (
        sum(after.threads[thread][kind] - before.threads[thread][kind] for thread in lasting)
        for kind in (0, 1)
    )
    others = (after.used - before.used) - (after.own - before.own)
    # a container with a limit of 4 on a host of 64 cores has its 4 as long as others leave them free
    left_to_others = max(0, after.allowed_cores - after.usable_cores)
    return Contention(
        usable_cores=after.usable_cores,
        others_cores=max(0.0, others / elapsed - left_to_others),
        waiting_share=waited / (ran + waited) if ran + waited > 0 else 0.0,
    )


def why_waiting_is_slow(threads: int, variables: Mapping[str, str]) -> str | None:
    """Return why waiting threads keep their cores busy although the user did not ask for it; None otherwise.

    `variables`: the environment variables that set how threads wait, as `atari_dqn.wait_variables` has them.
    """
    if threads == 1 or variables:
        return None
    return (
        "torch was imported before atari_dqn, so its threads keep their cores busy while they wait: updates "
        "take up to 1.6 times as long, and longer next to other programs; import atari_dqn first, or set "
        "GOMP_SPINCOUNT=2000"
    )


def _use_of_cores() -> tuple[float, int]:
    """Return the time in which cores were used, by programs or by other virtual machines, and their number.

    The cores are all listed ones if their places in the list are not their numbers: a container may list its
    own cores only, counted from 0.
    """
    affinity = getattr(os, "sched_getaffinity", None)  # macOS has none
    cores = psutil.cpu_times(percpu=True)
    numbers = affinity(0) if affinity else ()
    if numbers and max(numbers) < len(cores):
        cores = [cores[number] for number in numbers]
    return float(sum(sum(core) - core.idle - _not_used(core) for core in cores)), len(cores)


def _not_used(core: object) -> float:
    """Return the time that is not use of a core (waiting for disks) or is counted twice (guests)."""
    return sum(float(getattr(core, name, 0.0)) for name in ("iowait", "guest", "guest_nice"))


def _own_seconds() -> float:
    process = psutil.Process()
    total = sum(process.cpu_times()[:4])  # user and system, and the same of children that have ended
    for child in process.children(recursive=True):
        with suppress(psutil.Error):  # the child has just ended
            total += sum(child.cpu_times()[:4])
    return float(total)


def _thread_times() -> Iterator[tuple[int, tuple[float, float]]]:
    if not _TASKS.is_dir():
        return
    normal = os.getpriority(os.PRIO_PROCESS, os.getpid())
    for task in _TASKS.iterdir():
        with suppress(OSError, ValueError):  # the thread has just ended, or the kernel does not record it
            ran, waited, _ = (task / "schedstat").read_text().split()
            if os.getpriority(os.PRIO_PROCESS, int(task.name)) <= normal:
                yield int(task.name), (int(ran) * _NANOSECOND, int(waited) * _NANOSECOND)
