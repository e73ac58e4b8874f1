"""Identify a process on its machine, and find out whether it still runs."""

from __future__ import annotations

import os
import platform
import socket
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import psutil  # type: ignore[import-untyped]

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_PID_NAMESPACE = Path("/proc/self/ns/pid")
_START_FIELD = 19
"""Index of the start time in /proc/PID/stat, counted after the name of the program; proc(5), field 22."""


@dataclass(frozen=True, kw_only=True)
class Owner:
    """A process that holds leases."""

    host: str
    """Name of its host, for display."""
    machine: str
    """Identity of the set of process ids to which `pid` belongs: a boot of a machine, or a container."""
    pid: int
    started: int
    """Start time of the process, in a unit of its machine: a process id may be given to another process."""

    @classmethod
    def current(cls) -> Owner:
        """Return the calling process."""
        pid = os.getpid()
        return cls(host=socket.gethostname(), machine=this_machine(), pid=pid, started=start_time(pid) or 0)

    @property
    def is_here(self) -> bool:
        """Whether the process belongs to this machine, so that its id has a meaning here."""
        return self.machine == this_machine()

    @property
    def has_ended(self) -> bool:
        """Whether the process is known to have ended; False for a process of another machine."""
        return self.is_here and not is_running(self.pid, self.started)


@cache
def this_machine() -> str:
    """Return the identity of this machine since its boot, or of the container that this process is in."""
    try:
        boot, namespace = _BOOT_ID.read_text().strip(), str(_PID_NAMESPACE.readlink())
    except OSError:  # not Linux
        boot, namespace = f"{psutil.boot_time():.0f}", ""
    return f"{platform.node()} {boot} {namespace}".strip()


def start_time(pid: int) -> int | None:
    """Return the start time of a process of this machine; None if it has ended.

    `OSError` if that cannot be found out, for example without a free descriptor.
    """
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None if Path("/proc/self/stat").exists() else _start_time_by_psutil(pid)
    state, *fields = text.rpartition(")")[2].split()
    return None if state in ("Z", "X") else int(fields[_START_FIELD - 1])


def is_running(pid: int, started: int) -> bool:
    """Return whether a process of this machine runs, or may run."""
    try:
        return start_time(pid) == started
    except OSError:
        return True


def _start_time_by_psutil(pid: int) -> int | None:
    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else round(process.create_time() * 100)
    except psutil.Error:
        return None
