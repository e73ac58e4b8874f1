"""The leases under which a command has members trained on a cluster: each run stops without its own."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from threading import Event, Lock, Thread

from atari_dqn.run.leases.lease import HeldLease
from atari_dqn.run.leases.owner import Owner
from atari_dqn.run.sweep.folder import SweepFolder


class CommandLeases:
    """Leases that a thread renews, because a look at the nodes of a cluster may take minutes."""

    def __init__(self, folder: SweepFolder, period_seconds: float) -> None:
        self.period_seconds = period_seconds
        self._leases, self._owner = folder.commands, Owner.current()
        self._held: dict[str, HeldLease] = {}
        self._lock, self._is_closed = Lock(), Event()
        self._thread = Thread(target=self._renew, name="heartbeat", daemon=True)
        self._thread.start()

    def take(self) -> str:
        """Take a new lease and return its name."""
        name = f"command_{secrets.token_hex(8)}"
        held = self._leases.take(name, self._owner, period_seconds=self.period_seconds)
        assert held is not None, "the name is new"
        with self._lock:
            self._held[name] = held
        return name

    def is_held(self, name: str) -> bool:
        """Return whether a lease has not been released."""
        return name in self._held

    def release(self, names: Collection[str]) -> None:
        """Give leases up. Each may be released twice."""
        with self._lock:
            for held in [self._held.pop(name) for name in names if name in self._held]:
                held.release()

    def close(self) -> None:
        """Give all leases up."""
        self._is_closed.set()
        self._thread.join()
        self.release([*self._held])

    def _renew(self) -> None:
        while not self._is_closed.wait(self.period_seconds):
            with self._lock:
                for held in self._held.values():
                    held.beat()


@contextmanager
def command_leases(folder: SweepFolder, period_seconds: float) -> Iterator[CommandLeases]:
    """Yield the leases of this command, none yet; remove those of commands that have ended."""
    commands, owner = folder.commands, Owner.current()
    for lease in commands.current().values():
        if lease.owner.has_ended:
            ended = commands.take(lease.name, owner, over=lease)
            if ended is not None:
                ended.release()
    leases = CommandLeases(folder, period_seconds)
    try:
        yield leases
    finally:
        leases.close()
