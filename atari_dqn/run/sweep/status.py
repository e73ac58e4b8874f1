"""The status of a sweep, read from its folder alone, on any machine that has access to it."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import get_args

from atari_dqn.files.permission import is_closed
from atari_dqn.formatting import printable
from atari_dqn.run.leases.lease import Lease
from atari_dqn.run.leases.observer import LeaseObserver
from atari_dqn.run.sweep.failures import Failure, FailureKind, read_failures
from atari_dqn.run.sweep.folder import SweepFolder
from atari_dqn.run.sweep.mismatch import mismatch
from atari_dqn.run.sweep.progress import RunProgress, file_stamp
from atari_dqn.run.sweep.record import Member, read_record

FAILED: tuple[str, ...] = get_args(FailureKind)
"""States of runs that are not tried again."""
ENDED = ("finished", *FAILED)


@dataclass(frozen=True, kw_only=True)
class MemberStatus:
    """The status of one run."""

    member: Member
    state: str
    """`waiting`, `running`, `abandoned` (its lease is stale), `stopped`, `finished`, or one of `FAILED`."""
    host: str = ""
    env_frames: int = 0
    total_frames: int = 0
    frames_per_second: float = math.nan
    seconds_left: float = math.nan
    evaluation: Mapping[str, float] = field(default_factory=dict)
    """The latest row of eval_log."""
    alerts: tuple[str, ...] = ()
    failure: Failure | None = None
    belongs: bool = True
    """Whether the sweep file still has the run."""


@dataclass(frozen=True, kw_only=True)
class Totals:
    """The sums over the runs of a sweep."""

    states: Mapping[str, int]
    """Number of runs by state."""
    env_frames: int
    total_frames: int
    frames_per_second: float
    """Of all runs that run now."""
    seconds_left: float
    """Time to the end of the sweep at that speed; NaN if nothing runs."""


class SweepStatus:
    """Tracks the runs of a sweep. `refresh` reads what has changed."""

    def __init__(self, path: Path) -> None:
        self.folder = SweepFolder(path)
        self._record_stamp: tuple[int, int] | None = None
        self._runs: dict[str, RunProgress] = {}
        self._digests: dict[str, str] = {}
        """The digests of the specs of these runs: a name whose run has not begun may get another spec."""
        self._read_record()
        self._observer = LeaseObserver(self.folder.leases)
        self._statuses: dict[str, MemberStatus] = {}
        self._mismatches: dict[str, tuple[object, Failure | None]] = {}
        """By name, as of a stamp of the run's provenance.json, which never changes."""

    def refresh(self, only: Collection[str] | None = None) -> None:
        """Read all runs, or only those named and those with a lease now or at the last time.

        All are read if the record of the sweep was written again.
        """
        if file_stamp(self.folder.record) != self._record_stamp:
            self._read_record()
            self._statuses, self._mismatches, only = {}, {}, None
        before = self._observer.leases.keys()
        self._observer.refresh()
        failures = read_failures(self.folder.failures)
        changed = {*(only or ()), *before, *self._observer.leases}
        names = self._runs.keys() if only is None else changed & self._runs.keys()
        for members, belongs in ((self.record.members, True), (self.record.former, False)):
            for member in members:
                if member.name in names:
                    self._runs[member.name].refresh()
                    other, failure = self._mismatch(member), failures.get(member.name)
                    self._statuses[member.name] = (
                        self._status(member, failure, belongs=belongs)
                        if other is None
                        else self._status_of_other(member, other, belongs=belongs)
                    )

    def _read_record(self) -> None:
        """Read the members, which another command may have added or taken away."""
        self._record_stamp = file_stamp(self.folder.record)
        self.record = read_record(self.folder.record)
        for member in (*self.record.members, *self.record.former):
            if self._digests.get(member.name) != member.digest:
                path = self.folder.path / member.name
                self._digests[member.name] = member.digest
                self._runs[member.name] = RunProgress(path, member.total_frames)

    @property
    def members(self) -> tuple[MemberStatus, ...]:
        """The status of each run that has been read."""
        return tuple(self._statuses.values())

    @property
    def has_ended(self) -> bool:
        """Whether every run of the sweep has finished or is not tried again."""
        return all(each.state in ENDED for each in self.members if each.belongs)

    @property
    def totals(self) -> Totals:
        """The sums over the runs that belong to the sweep."""
        members = [each for each in self.members if each.belongs]
        states: dict[str, int] = {}
        for each in members:
            states[each.state] = states.get(each.state, 0) + 1
        rates = [each.frames_per_second for each in members if each.state == "running"]
        rate = sum(rate for rate in rates if rate > 0)
        left = sum(each.total_frames - each.env_frames for each in members if each.state not in ENDED)
        return Totals(
            states=states,
            env_frames=sum(each.env_frames for each in members),
            total_frames=sum(each.total_frames for each in members),
            frames_per_second=rate,
            seconds_left=left / rate if rate > 0 else math.nan,
        )

    def _mismatch(self, member: Member) -> Failure | None:
        """Return why the directory of a member holds another run, or why that is not known.

        It is read again once it is replaced, or once it may be read.
        """
        run = self.folder.run(member.name)
        closed = is_closed(run.path)
        stamp = None if closed else file_stamp(run.provenance)
        if stamp is None and not closed:
            return None
        known = self._mismatches.get(member.name)
        if known is None or known[0] != stamp:
            known = self._mismatches[member.name] = (stamp, mismatch(run, member))
        return known[1]

    def _status_of_other(self, member: Member, other: Failure, *, belongs: bool) -> MemberStatus:
        """Return the status of a member whose name another run has, of which nothing counts."""
        return MemberStatus(
            member=member,
            state=other.kind,
            total_frames=member.total_frames,
            failure=other,
            belongs=belongs,
        )

    def _status(self, member: Member, failure: Failure | None, *, belongs: bool) -> MemberStatus:
        run, lease = self._runs[member.name], self._observer.leases.get(member.name)
        return MemberStatus(
            member=member,
            state=self._state(run, lease, failure),
            host="" if lease is None else printable(lease.owner.host),
            env_frames=run.total_frames if run.has_finished else run.env_frames,
            total_frames=run.total_frames,
            frames_per_second=run.frames_per_second,
            seconds_left=run.seconds_left,
            evaluation=run.evaluation,
            alerts=tuple(run.alerts),
            failure=failure,
            belongs=belongs,
        )

    def _state(self, run: RunProgress, lease: Lease | None, failure: Failure | None) -> str:
        if run.has_finished:
            return "finished"
        if lease is not None:
            return "abandoned" if self._observer.is_stale(lease.name) else "running"
        if failure is not None:
            return failure.kind
        return "stopped" if run.has_begun else "waiting"
