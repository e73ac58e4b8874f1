"""Whether other programs use the processor cores that a run's threads need.

Two signals are taken together. The cores' own counters say how much of them other programs use; that alone
does not say whether anything waits: a machine of 16 cores is not busy because of one program. The scheduler
of Linux says of each thread how long it was ready to run and had no core; that alone may be the run's own
doing. Where both are large, threads that compute one sum together wait for the one that has no core, and
training slows down several times. The load average is not used: it lags by a minute, and counts programs that
wait for disks.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil  # type: ignore[import-untyped]

from atari_dqn.cgroup import ControlGroups
from atari_dqn.hardware import usable_cores

_TASKS = Path("/proc/self/task")
_NANOSECOND = 1e-9
_SHORTEST_SECONDS = 0.2
"""The cores' counters advance in hundredths of a second: over less they say little."""
_SPARE_CORES = 0.5
_USED_BY_OTHERS_CORES = 0.25
_WAITING_SHARE = 0.15


@dataclass(frozen=True, kw_only=True)
class CoreTimes:
    """Counters of processor time at one moment, in seconds."""

    at: float
    usable_cores: int
    """Cores this process may use; a container may grant it fewer than it may run on."""
    used: float
    """By all programs together, on the cores that this process may run on."""
    own: float
    """By this process and those it started."""
    threads: Mapping[int, tuple[float, float]]
    """By thread of this process: how long it ran, and how long it was ready and had no core.

    Empty where the system does not say: Linux alone does. Threads of low priority are meant to wait, and are
    left out.
    """


@dataclass(frozen=True, kw_only=True)
class Contention:
    """How a span of time was shared between this process and others."""

    usable_cores: int
    others_cores: float
    """Cores that other programs used on average."""
    waiting_share: float
    """Of the time that this process's threads were ready to run: how much they had no core."""

    def leaves_too_few(self, threads: int) -> bool:
        """Return whether so many threads, were they to compute now, would have to share cores with others."""
        return self.others_cores + threads > self.usable_cores + _SPARE_CORES and self._others_count

    def slows(self, threads: int) -> bool:
        """Return whether a process that computes with so many threads was slowed down."""
        is_crowded = self._others_count or threads > self.usable_cores
        return self.waiting_share > _WAITING_SHARE and is_crowded

    @property
    def suitable_threads(self) -> int:
        """As many threads as there are cores that others leave; at least one."""
        return max(1, int(self.usable_cores - self.others_cores + _USED_BY_OTHERS_CORES))

    @property
    def _others_count(self) -> bool:
        return self.others_cores >= _USED_BY_OTHERS_CORES

    def __str__(self) -> str:
        """What others use, for people."""
        return f"other programs use {self.others_cores:.1f} of {self.usable_cores} cores"


def read_core_times() -> CoreTimes:
    """Return the counters as they are now."""
    return CoreTimes(
        at=time.monotonic(),
        usable_cores=usable_cores(ControlGroups()),
        used=_used_seconds(),
        own=_own_seconds(),
        threads=dict(_thread_times()),
    )


def contention(before: CoreTimes, after: CoreTimes) -> Contention | None:
    """Return how the time between two moments was shared; None where it was too short to say."""
    elapsed = after.at - before.at
    if elapsed < _SHORTEST_SECONDS:
        return None
    lasting = before.threads.keys() & after.threads.keys()
    ran, waited = (
        sum(after.threads[thread][kind] - before.threads[thread][kind] for thread in lasting)
        for kind in (0, 1)
    )
    others = (after.used - before.used) - (after.own - before.own)
    return Contention(
        usable_cores=after.usable_cores,
        others_cores=max(0.0, others / elapsed),
        waiting_share=waited / (ran + waited) if ran + waited > 0 else 0.0,
    )


def _used_seconds() -> float:
    """Return the time that cores were used, by programs or by other machines on the same processor."""
    affinity = getattr(os, "sched_getaffinity", None)  # macOS has none
    cores = psutil.cpu_times(percpu=True)
    mine = [cores[index] for index in affinity(0) if index < len(cores)] if affinity else cores
    return float(sum(sum(core) - core.idle - _idle_too(core) for core in mine))


def _idle_too(core: object) -> float:
    """Return what is no use of a core, or is counted twice: waiting for disks, guests' time."""
    return sum(float(getattr(core, name, 0.0)) for name in ("iowait", "guest", "guest_nice"))


def _own_seconds() -> float:
    process = psutil.Process()
    total = sum(process.cpu_times()[:4])  # user and system, and the same of children that have ended
    for child in process.children(recursive=True):
        with suppress(psutil.Error):  # it has just ended
            total += sum(child.cpu_times()[:4])
    return float(total)


def _thread_times() -> Iterator[tuple[int, tuple[float, float]]]:
    if not _TASKS.is_dir():
        return
    normal = os.getpriority(os.PRIO_PROCESS, os.getpid())
    for task in _TASKS.iterdir():
        with suppress(OSError, ValueError):  # it has just ended, or the kernel does not count
            ran, waited, _ = (task / "schedstat").read_text().split()
            if os.getpriority(os.PRIO_PROCESS, int(task.name)) <= normal:
                yield int(task.name), (int(ran) * _NANOSECOND, int(waited) * _NANOSECOND)
