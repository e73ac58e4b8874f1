"""End a training whose run another process has taken over, before it writes anything more.

A training that a sweep starts finds its lease in two environment variables. Every commit to the run (rows,
notices, games of an evaluation, checkpoints, the summary) calls `check_lease` first. Other trainings have no
lease; for them the check does nothing.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from atari_dqn.envs.processes import end_with_parent
from atari_dqn.run.leases.lease import HeldLease, holds, read_lease

_FILE, _TOKEN = "DQN_LEASE_FILE", "DQN_LEASE_TOKEN"
LOST_EXIT_CODE = 75
"""Exit code of a training that has lost its lease; only the sweep that started it reads the code."""
_MESSAGE = b"another process has taken this run over: ended without writing\n"


@dataclass(frozen=True)
class LeaseGuard:
    """The lease under which this process trains."""

    path: Path
    token: str

    def check(self) -> None:
        """End this process at once if the lease is lost: nothing is flushed, reported or saved."""
        if not holds(self.path, self.token):
            os.write(2, _MESSAGE)
            os._exit(LOST_EXIT_CODE)


def lease_environment(held: HeldLease) -> dict[str, str]:
    """Return the environment variables of a training under a lease."""
    return {_FILE: str(held.path.absolute()), _TOKEN: held.lease.token}


def guard_in(environment: Mapping[str, str]) -> LeaseGuard | None:
    """Return the lease that environment variables name; None without one."""
    if _FILE not in environment or _TOKEN not in environment:
        return None
    return LeaseGuard(Path(environment[_FILE]), environment[_TOKEN])


@cache
def _guard() -> LeaseGuard | None:
    return guard_in(os.environ)


def check_lease() -> None:
    """End this process at once if it trains under a lease that is lost."""
    guard = _guard()
    if guard is not None:
        guard.check()


def end_with_owner() -> None:
    """Let the kernel kill this training when the process that holds its lease ends; check the lease."""
    guard = _guard()
    if guard is None:
        return
    lease = read_lease(guard.path)
    if lease is not None and lease.owner.is_here:
        end_with_parent(lease.owner.pid)
    guard.check()
