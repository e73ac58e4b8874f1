"""The lease of a command that trains members on a cluster; the runs that it starts stop without it."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Lock, Thread

from atari_dqn.run.leases.lease import HeldLease, Lease
from atari_dqn.run.leases.owner import Owner
from atari_dqn.run.sweep.folder import SweepFolder


class CommandLease:
    """A lease that a thread renews, because a look at the nodes of a cluster may take minutes."""

    def __init__(self, held: HeldLease) -> None:
        self._held, self._lock, self._is_released = held, Lock(), Event()
        self._thread = Thread(target=self._renew, name="heartbeat", daemon=True)
        self._thread.start()

    @property
    def lease(self) -> Lease:
        """The lease as it is on disk."""
        return self._held.lease

    def release(self) -> None:
        """Give the lease up. May be called twice."""
        self._is_released.set()
        with self._lock:
            self._held.release()
        self._thread.join()

    def _renew(self) -> None:
        while not self._is_released.wait(self.lease.period_seconds):
            with self._lock:
                if self._is_released.is_set() or not self._held.beat():
                    return


@contextmanager
def command_lease(folder: SweepFolder, period_seconds: float) -> Iterator[CommandLease]:
    """Hold the lease of this command; remove those of commands that have ended."""
    commands, owner = folder.commands, Owner.current()
    for lease in commands.current().values():
        if lease.owner.has_ended:
            ended = commands.take(lease.name, owner, over=lease)
            if ended is not None:
                ended.release()
    held = commands.take(f"sweep_{secrets.token_hex(8)}", owner, period_seconds=period_seconds)
    assert held is not None, "the name is new"
    command = CommandLease(held)
    try:
        yield command
    finally:
        command.release()
