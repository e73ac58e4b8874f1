"""What runs on a node of a cluster: a report on the node, the probe of the folder, the training of a member.

Arguments and results are plain values, so that nothing but this module's functions is needed to read them.
"""

from __future__ import annotations

import os
import platform
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from threading import Event, Thread
from typing import Any

import msgspec

from atari_dqn import __version__
from atari_dqn.errors import UserError
from atari_dqn.run import provenance
from atari_dqn.run.leases.lease import Lease, LeaseFolder
from atari_dqn.run.leases.observer import LeaseObserver
from atari_dqn.run.leases.owner import Owner, this_machine
from atari_dqn.run.sweep.folder import SweepFolder
from atari_dqn.run.sweep.record import Member
from atari_dqn.scale.on_ray.address import MODE
from atari_dqn.scale.room import Placement, cores_of, find_sweep_hardware
from atari_dqn.scale.runner import Runner
from atari_dqn.scale.shared_folder import Probe, answer_probe
from atari_dqn.spec.added_packages import packages_here

Plain = dict[str, Any]
"""Text, numbers, and lists and tables of them."""
_LONGEST_POLL_SECONDS = 1.0


def versions() -> dict[str, str]:
    """Return the versions on which results depend, those of packages that add parts of specs included.

    A version is empty if the package is missing.
    """
    return {
        "atari_dqn": __version__,
        "Python": platform.python_version(),
        "torch": provenance.versions()["torch"] or "",
        **packages_here(),
    }


def report(path: str) -> Plain:
    """Describe this node: its versions, its hardware, and whether its Ray requires a token."""
    hardware = find_sweep_hardware(Path(path))
    return {
        "host": socket.gethostname(),
        "machine": this_machine(),
        "mode": os.environ.get(MODE, ""),
        "versions": versions(),
        "hardware": asdict(hardware),
        "cores": list(cores_of(hardware)),
    }


def answer(path: str, probe: dict[str, str], name: str) -> str:
    """Answer a probe of the sweep's folder; return why this node is refused, or nothing."""
    try:
        answer_probe(SweepFolder(Path(path)), Probe(**probe), name)
    except (UserError, OSError) as error:
        return str(error)
    return ""


def train_member(task: Plain) -> Plain:
    """Train a member of a sweep or a tune on this node to its end; return how it ended.

    If this function runs again after the worker that ran it has died, the lease of that worker is stale, and
    the run is taken over.
    """
    folder, reports = SweepFolder(Path(task["folder"])), list[str]()
    member = Member(**task["member"])
    is_free, stale = _free_lease(folder.leases, member.name, task["stale"])
    if not is_free:
        return {"kind": "held", "failure": None, "reports": reports}
    with _stopping_with(folder.commands, task) as stop:
        runner = Runner(
            folder=folder,
            owner=Owner.current(),
            stop=stop,
            report=reports.append,
            period_seconds=task["period_seconds"],
        )
        try:
            outcome = runner.run(member, msgspec.convert(task["placement"], Placement), stale)
        except UserError as error:
            return {"kind": "error", "failure": str(error), "reports": reports}
    failure = outcome.failure and msgspec.to_builtins(outcome.failure)
    return {"kind": outcome.kind, "failure": failure, "reports": reports}


def _free_lease(leases: LeaseFolder, name: str, stale: list[str | int] | None) -> tuple[bool, Lease | None]:
    """Return whether a member may be taken, and the stale lease over which, if it has one.

    `stale`: token and heartbeat of the lease that the command has observed to be stale.
    """
    observer = LeaseObserver(leases)
    observer.refresh()
    lease = observer.leases.get(name)
    if lease is None:
        return True, None
    is_free = [lease.token, lease.heartbeat] == stale or observer.is_stale(name)
    return is_free, lease


@contextmanager
def _stopping_with(commands: LeaseFolder, task: Plain) -> Iterator[Event]:
    """Yield an event that is set when the command's lease for the task is gone or stale."""
    stop, has_ended, observer = Event(), Event(), LeaseObserver(commands)

    def observe() -> None:
        observer.refresh()
        lease = observer.leases.get(task["command"])
        is_gone = lease is None and not commands.has_file(task["command"])
        if is_gone or (lease is not None and observer.is_stale(lease.name)):
            stop.set()

    def watch() -> None:
        while not stop.is_set() and not has_ended.wait(min(_LONGEST_POLL_SECONDS, task["period_seconds"])):
            with suppress(OSError):  # of the shared file system: the next look may succeed
                observe()

    observe()
    thread = Thread(target=watch, name="command", daemon=True)
    thread.start()
    try:
        yield stop
    finally:
        has_ended.set()
        thread.join()


def wait_for_leases(leases: LeaseFolder, names: set[str], seconds: float) -> None:
    """Wait until no lease of some members lives any more, or the time is over."""
    observer, until = LeaseObserver(leases), time.monotonic() + seconds
    while time.monotonic() < until:
        observer.refresh()
        if all(observer.is_stale(name) for name in names & observer.leases.keys()):
            return
        time.sleep(0.1)
