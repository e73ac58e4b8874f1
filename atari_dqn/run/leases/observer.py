"""Observe the leases of other processes, and decide by this process's monotonic clock which are stale."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from atari_dqn.run.leases.lease import STALE_HEARTBEATS, Lease, LeaseFolder


class LeaseObserver:
    """Records when the heartbeat of each lease last changed. `refresh` at least once in a period."""

    def __init__(self, folder: LeaseFolder, *, now: Callable[[], float] = time.monotonic) -> None:
        self._folder, self._now = folder, now
        self._since: dict[tuple[str, str, int], float] = {}
        """The time at which each lease was first observed with its present heartbeat."""
        self._at = now()
        self.leases: Mapping[str, Lease] = {}

    def refresh(self) -> None:
        """Read every lease."""
        # The time is taken first: if this process is stopped in between, no lease looks older than it is.
        self._at = self._now()
        self.leases = self._folder.current()
        keys = [_key(lease) for lease in self.leases.values()]
        self._since = {key: self._since.get(key, self._at) for key in keys}

    def is_stale(self, name: str) -> bool:
        """Return whether the lease of a run was stale at the last `refresh`, and may be stolen.

        It is if its owner is known to have ended, or if it is silent.
        """
        return self.leases[name].owner.has_ended or self.is_silent(name)

    def is_silent(self, name: str) -> bool:
        """Return whether the counter of a lease had not changed for some periods at the last `refresh`."""
        lease = self.leases[name]
        return self._at - self._since[_key(lease)] >= STALE_HEARTBEATS * lease.period_seconds


def _key(lease: Lease) -> tuple[str, str, int]:
    return lease.name, lease.token, lease.heartbeat
