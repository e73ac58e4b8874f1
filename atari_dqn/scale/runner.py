"""Run one member of a sweep to its end under a lease: the part that every scheduler shares."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from threading import Event
from typing import Literal

from atari_dqn.run.leases.guard import LOST_EXIT_CODE
from atari_dqn.run.leases.lease import PERIOD_SECONDS, HeldLease, Lease
from atari_dqn.run.leases.owner import Owner
from atari_dqn.run.lock import RunLockedError, is_in_use
from atari_dqn.run.sweep.failures import (
    KIND_OF_EXIT,
    CrashCount,
    Failure,
    FailureKind,
    read_failure,
    write_failure_record,
)
from atari_dqn.run.sweep.folder import SweepFolder
from atari_dqn.run.sweep.mismatch import mismatch
from atari_dqn.run.sweep.record import Member
from atari_dqn.scale.record_lock import may_train
from atari_dqn.scale.room import Placement
from atari_dqn.scale.takeover import take_over
from atari_dqn.scale.training_process import last_error, output_length, training_process

MOST_CRASHES = 5
"""A run that crashes so often in a row without a new checkpoint is not tried again."""
_FIRST_PAUSE_SECONDS = 1.0
_POLL_SECONDS = 0.2
_MOST_REASON_CHARACTERS = 1_000


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How the work of this process on a member ended."""

    kind: Literal["finished", "stopped", "failed", "held", "lost"]
    """`held`: another process trains or reads it. `lost`: another has taken it over, or changed the sweep."""
    failure: Failure | None = None
    """Why it failed and is not tried again."""


@dataclass(frozen=True, kw_only=True)
class Runner:
    """Runs members of a sweep in subprocesses of this process; a scheduler calls `run` from any thread."""

    folder: SweepFolder
    owner: Owner
    stop: Event
    """Set it to let every run save a checkpoint and stop."""
    report: Callable[[str], None]
    """Called with a sentence when something happens to a run."""
    period_seconds: float = PERIOD_SECONDS

    def run(self, member: Member, placement: Placement, stale: Lease | None = None) -> Outcome:
        """Run a member to its end, resuming it after crashes; return how it ended.

        A member whose failure is recorded in the folder is not tried again.
        `stale`: the lease that a `LeaseObserver` found stale, which is stolen; None if the run has no lease.
        """
        held = self._acquire(member, placement, stale)
        if held is None:
            return Outcome(kind="held")
        try:
            return self._run_held(member, placement, held)
        finally:
            held.release()

    def _acquire(self, member: Member, placement: Placement, stale: Lease | None) -> HeldLease | None:
        name = member.name
        held = self.folder.leases.take(
            name, self.owner, over=stale, period_seconds=self.period_seconds, cores=placement.cores
        )
        if held is not None and stale is not None:
            try:
                take_over(self.folder.run(name), stale, held)
            except BaseException:
                held.release()
                raise
            self.report(f"{name}: taken over from {stale.owner.host}, process {stale.owner.pid}")
        return held

    def _run_held(self, member: Member, placement: Placement, held: HeldLease) -> Outcome:
        if not may_train(self.folder, member):
            return Outcome(kind="lost")
        other = mismatch(self.folder.run(member.name), member)
        if other is not None:
            return self._failed(member, other)
        recorded = read_failure(self.folder.failure(member.name))
        if recorded is not None and not self.folder.has_finished(member.name):
            return Outcome(kind="failed", failure=recorded)  # by another command, since this one began
        crash_count = CrashCount(self.folder.progress(member.name))
        while not self.stop.is_set():
            if self.folder.has_finished(member.name):
                return Outcome(kind="finished")
            if self._is_in_use(member):
                return Outcome(kind="held")
            start = output_length(self.folder.output(member.name))
            code = self._train(member, placement, held)
            if not held.is_held():
                return Outcome(kind="lost")
            held.set_process(0, 0)
            crashes = crash_count.add(self.folder.progress(member.name))
            ended = self._ended(member, code, crashes, start)
            if ended is not None:
                return ended
            self.report(f"{member.name}: {_described(code)}; it is resumed")
            if not self._pause(held, crashes):
                return Outcome(kind="lost")
        return Outcome(kind="stopped")

    def _ended(self, member: Member, code: int, crashes: int, start: int) -> Outcome | None:
        """Return the outcome of a training that has ended; None if it is to be resumed."""
        if code == RunLockedError.exit_code:
            return Outcome(kind="held")
        kind: FailureKind | None = KIND_OF_EXIT.get(code)
        if kind is None and self.folder.has_finished(member.name):  # also if a signal came afterwards
            return Outcome(kind="finished")
        if kind is None and self.stop.is_set():
            return Outcome(kind="stopped")
        if kind is None and crashes < MOST_CRASHES:
            return None
        lines = last_error(self.folder.output(member.name), start) or [_described(code)]
        # a halt's other lines are advice for a run that belongs to no sweep; `Failure.remedy` has its own
        reason = lines[0] if kind == "halted" else "; ".join(lines)
        reason = reason[:_MOST_REASON_CHARACTERS]
        return self._failed(member, Failure(kind=kind or "crashed", reason=reason, exit_code=code))

    def _failed(self, member: Member, failure: Failure) -> Outcome:
        """Record that a member is not tried again."""
        write_failure_record(self.folder.failure(member.name), failure)
        return Outcome(kind="failed", failure=failure)

    def _train(self, member: Member, placement: Placement, held: HeldLease) -> int:
        """Run the training to its end, or until the lease is lost; return its exit code."""
        with training_process(self.folder, member, placement, held) as process:
            is_stopping, due = False, time.monotonic() + self.period_seconds
            while (code := _exit_code(process)) is None:
                if time.monotonic() >= due:
                    due = time.monotonic() + self.period_seconds
                    if not held.beat():
                        return LOST_EXIT_CODE
                if self.stop.is_set() and not is_stopping:
                    is_stopping = True
                    process.terminate()
            return code

    def _pause(self, held: HeldLease, crashes: int) -> bool:
        """Wait before the next attempt, longer after each crash; return False if the lease is lost."""
        seconds = _FIRST_PAUSE_SECONDS * 2 ** (crashes - 1)
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0 and not self.stop.wait(min(left, self.period_seconds)):
            if not held.beat():
                return False
        return True

    def _is_in_use(self, member: Member) -> bool:
        """Return whether a process without a lease uses it, such as a user's `dqn resume` or `dqn verify`."""
        return self.folder.has_begun(member.name) and is_in_use(self.folder.run(member.name).path)


def _exit_code(process: subprocess.Popen[bytes]) -> int | None:
    """Return the exit code of a process, after a short wait; None while it runs."""
    try:
        return process.wait(timeout=_POLL_SECONDS)
    except subprocess.TimeoutExpired:
        return None


def _described(code: int) -> str:
    return f"killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
