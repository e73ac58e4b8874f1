"""Run members at a site, each as soon as its lease is free or stale and the site has room for it."""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Sequence
from typing import Protocol

from atari_dqn.errors import UserError
from atari_dqn.run.leases.lease import LeaseFolder
from atari_dqn.run.leases.observer import LeaseObserver
from atari_dqn.run.sweep.record import Member
from atari_dqn.scale.runner import Outcome


class Site(Protocol):
    """Where members are trained: this machine, or the nodes of a cluster."""

    @property
    def running(self) -> Collection[str]:
        """The names of the members that are trained there for this command."""
        ...

    def refresh(self, observer: LeaseObserver) -> None:
        """Update what is free, by the leases that were just read."""
        ...

    def has_room(self) -> bool:
        """Return whether a core is free."""
        ...

    def start(self, member: Member, observer: LeaseObserver) -> None:
        """Start a member whose lease is free or stale, if it fits now."""
        ...

    def lacking(self, member: Member) -> str:
        """Describe what the site has too little of for a member."""
        ...

    def stop(self, names: Collection[str]) -> None:
        """Let running members save a checkpoint and stop."""
        ...

    def ended(self) -> Sequence[tuple[str, Outcome | BaseException]]:
        """Wait a moment for members that end; return them with their outcomes."""
        ...


class SiteWorkers:
    """Implements `Workers` for a site.

    A member whose lease another process holds is left to it, and taken over once its lease is stale.
    """

    def __init__(
        self, site: Site, leases: LeaseFolder, *, period_seconds: float, jobs: int | None = None
    ) -> None:
        """`jobs`: the largest number of runs at once; None for as many as fit."""
        self._site, self._period_seconds, self._jobs = site, period_seconds, jobs
        self._observer = LeaseObserver(leases)
        self._not_before: dict[str, float] = {}
        self._error: BaseException | None = None

    @property
    def running(self) -> Collection[str]:
        """The names of the members that run for this command."""
        return self._site.running

    def start(self, members: Sequence[Member]) -> None:
        """Start, in order, every member that fits and does not run anywhere.

        `UserError` if nothing runs and nothing ever will.
        """
        if self._error is not None:
            return
        self._observer.refresh()
        self._site.refresh(self._observer)
        # they are more than `jobs` where a task of a cluster was written off, and its heartbeat goes on
        most = math.inf if self._jobs is None else self._jobs
        free = [member for member in members if self._is_free(member.name)]
        for member in free:
            if not self._site.has_room() or len(self.running) >= most:
                break
            self._site.start(member, self._observer)
        if free and not self.running and all(map(self._observer.is_stale, self._observer.leases)):
            raise UserError(f"{free[0].name} does not fit: {self._site.lacking(free[0])}; see --plan")

    def stop(self, names: Collection[str]) -> None:
        """Let running members save a checkpoint and stop."""
        self._site.stop(names)

    def ended(self) -> list[tuple[str, Outcome]]:
        """Wait a moment for members that end; return them with their outcomes."""
        found = []
        for name, outcome in self._site.ended():
            if isinstance(outcome, BaseException):
                self._error = self._error or outcome
                continue
            if outcome.kind in ("held", "lost"):
                self._not_before[name] = time.monotonic() + self._period_seconds
            found.append((name, outcome))
        if self._error is not None:
            self._site.stop([*self.running])
        return found

    def raise_error(self) -> None:
        """Raise the first error of a member, once all others have stopped."""
        if self._error is not None and not self.running:
            raise self._error

    def _is_free(self, name: str) -> bool:
        if name in self.running or self._not_before.get(name, 0.0) > time.monotonic():
            return False
        return name not in self._observer.leases or self._observer.is_stale(name)
