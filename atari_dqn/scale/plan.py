"""Plan a sweep: what each run takes, how long it lasts at a measured rate, and how many fit at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapreplace
from statistics import median

from atari_dqn.formatting import count, duration, plural, size
from atari_dqn.machine.hardware import Hardware
from atari_dqn.run.sweep.record import Member, SweepRecord
from atari_dqn.run.sweep.status import ENDED, MemberStatus, SweepStatus
from atari_dqn.run.threads import check_threads
from atari_dqn.scale.room import Disk, Need, Needs, Room
from atari_dqn.spec.keys import build
from atari_dqn.view.names import distinct_names

_NAME_COLUMNS = 16
"""Least width of the names of runs."""
_GAP = 2


@dataclass(frozen=True, kw_only=True)
class PlannedRun:
    """What one run needs until its end."""

    name: str
    state: str
    frames_left: int
    frames_per_second: float | None
    """Measured; None if no rate is known."""
    need: Need
    disk_left: int
    """Bytes of disk space that its files do not take yet."""
    lacking: tuple[str, ...] = ()
    """What this machine has too little of for it, even if nothing else is trained there."""

    @property
    def seconds(self) -> float | None:
        """Training time that is left, without evaluations; None if no rate is known."""
        return self.frames_left / self.frames_per_second if self.frames_per_second else None


@dataclass(frozen=True, kw_only=True)
class SweepPlan:
    """What a sweep needs until its end, on this machine."""

    device: str
    runs: tuple[PlannedRun, ...]
    former: tuple[str, ...]
    """Runs in the folder that the sweep file does not have any more."""
    at_once: int
    """Number of runs that this machine can hold at the same time."""
    limited_by: tuple[str, ...]
    """What one run more would lack."""
    cores: int
    disk_free: int

    @property
    def left(self) -> list[PlannedRun]:
        """The runs that have not ended."""
        return [run for run in self.runs if run.state not in ENDED]

    @property
    def unfit(self) -> list[PlannedRun]:
        """The runs that this machine cannot train, apart from those that are trained elsewhere now."""
        return [run for run in self.left if run.lacking and run.state != "running"]


def make_sweep_plan(
    record: SweepRecord,
    *,
    hardware: Hardware,
    devices: Sequence[str],
    status: SweepStatus | None,
    rates: Mapping[str, float],
    jobs: int | None = None,
) -> SweepPlan:
    """Plan the runs of a record. `rates`: measured frames per second by label, for labels without runs.

    `status`: of the folder, if the sweep has begun; its runs have the best rates, with others at work.
    `UserError` if a run that is left would have more threads than this machine has cores.
    """
    disk = Disk(hardware.disk_free_bytes, None if status is None else status.folder.written_bytes)
    needs, room = Needs(hardware, record.threads), Room(hardware, devices, disk=disk)
    begun = _begun(record, status)
    known = {**rates, **_rates_of(begun.values())}
    runs = []
    for member in record.members:
        found, need = begun.get(member.name), needs.of(member, devices[0])
        runs.append(
            PlannedRun(
                name=member.name,
                state="waiting" if found is None else found.state,
                frames_left=_frames_left(member, found),
                frames_per_second=known.get(member.label),
                need=need,
                disk_left=disk.left_to_write(member.name, need.disk),
                lacking=tuple(room.lacking(member.name, needs.by_device(member, devices))),
            )
        )
    pending = [each for each, run in zip(record.members, runs, strict=True) if run.state not in ENDED]
    if pending:
        check_threads("threads", record.threads, hardware.cores_usable)
    at_once, limited_by = _at_once(pending, room, needs, jobs)
    return SweepPlan(
        device=record.device,
        runs=tuple(runs),
        former=tuple(member.name for member in record.former),
        at_once=at_once,
        limited_by=limited_by,
        cores=hardware.cores_usable,
        disk_free=hardware.disk_free_bytes,
    )


def _frames_left(member: Member, found: MemberStatus | None) -> int:
    """Return the frames that a run has not trained yet; `found`: its status, None if it has not begun."""
    total, done = (member.total_frames, 0) if found is None else (found.total_frames, found.env_frames)
    return max(0, total - done)


def _begun(record: SweepRecord, status: SweepStatus | None) -> dict[str, MemberStatus]:
    """Return the status of each run by name; that of a run whose keys have changed since is left out."""
    digests = {member.name: member.digest for member in record.members}
    members = () if status is None else status.members
    return {each.member.name: each for each in members if digests.get(each.member.name) == each.member.digest}


def _rates_of(members: Iterable[MemberStatus]) -> dict[str, float]:
    """Return the median rate of the runs of each label that have one."""
    rates: dict[str, list[float]] = {}
    for each in members:
        if each.frames_per_second > 0:
            rates.setdefault(each.member.label, []).append(each.frames_per_second)
    return {label: median(values) for label, values in rates.items()}


def _at_once(
    pending: Sequence[Member], room: Room, needs: Needs, jobs: int | None
) -> tuple[int, tuple[str, ...]]:
    """Return how many pending runs fit at the same time, and what one more would lack."""
    for member in pending:
        by_device = needs.by_device(member, room.devices)
        if len(room) == jobs:
            return len(room), ("--jobs",)
        if room.place(member.name, by_device, threads=1) is None:
            return len(room), tuple(room.lacking(member.name, by_device))
    return len(room), ()


def measured_rates(members: Iterable[Member], device: str, *, within_seconds: float) -> dict[str, float]:
    """Measure the rate of each label alone on this machine; imports torch in another process."""
    from atari_dqn.train.estimate import estimate_rate

    rates = {}
    for member in {member.label: member for member in members}.values():
        found = estimate_rate(build(member.values), device, within_seconds=within_seconds)
        if found.frames_per_second is not None:
            rates[member.label] = found.frames_per_second
    return rates


def plan_lines(plan: SweepPlan, columns: int) -> Iterator[str]:
    """Yield the lines of a plan: one for each run, as wide as so many columns, then the sums."""
    yield from _table(plan, columns)
    yield ""
    yield from _sums(plan)


def _table(plan: SweepPlan, columns: int) -> Iterator[str]:
    """Yield a line for each run, and the titles before; numbers are never cut, names are shortened."""
    titles = ("state", "frames", "time", "cores", "RAM", *(["VRAM"] if plan.device != "cpu" else []), "disk")
    rows = [_entries(run) for run in plan.runs]
    widths = {title: max(map(len, [title, *(row[title] for row in rows)])) for title in titles}
    room = columns - sum(_GAP + width for width in widths.values())
    names = distinct_names([run.name for run in plan.runs], max(_NAME_COLUMNS, room))
    width = max(map(len, ["run", *names.values()]))
    gap = " " * _GAP
    for name, row in [("run", {title: title for title in titles}), *zip(names.values(), rows, strict=True)]:
        numbers = (f"{row[title]:>{widths[title]}}" for title in titles[1:])
        yield gap.join([f"{name:<{width}}", f"{row['state']:<{widths['state']}}", *numbers])


def _entries(run: PlannedRun) -> dict[str, str]:
    return {
        "state": run.state,
        "frames": count(run.frames_left),
        "time": "-" if run.seconds is None else duration(run.seconds),
        "cores": f"{run.need.cores:,}",
        "RAM": size(run.need.ram),
        "VRAM": size(run.need.vram),
        "disk": size(run.need.disk),
    }


def _sums(plan: SweepPlan) -> Iterator[str]:
    left, frames_left = plan.left, sum(run.frames_left for run in plan.left)
    yield f"{plural(len(plan.runs), 'run')}, {len(left):,} of them to do: {frames_left:,} frames"
    if left:
        limit = f"; one more would lack {' and '.join(plan.limited_by)}" if plan.limited_by else ""
        yield f"at once here: {plan.at_once}, on {plural(plan.cores, 'core')}{limit}"
        yield _time(plan)
    disk = sum(run.disk_left for run in left)
    short = "" if disk <= plan.disk_free else ": too little for all, so the last runs may have to wait"
    yield f"disk of all: {size(disk)} of {size(plan.disk_free)} free{short}"
    for name in plan.former:
        yield f"{name} is not in the sweep file any more; it is kept, and not continued"


def _time(plan: SweepPlan) -> str:
    known = [run.seconds for run in plan.left if run.seconds is not None]
    if len(known) < len(plan.left):
        return "time: not known for every run; --measure measures each method briefly, `dqn bench` for longer"
    shared = duration(_time_at_once(known, plan.at_once)) if plan.at_once else "-"
    times = f"{duration(sum(known))} one after another, {shared} with {plan.at_once} at once"
    return f"time, evaluations left out: {times}"


def _time_at_once(seconds: Sequence[float], at_once: int) -> float:
    """Compute the time of runs that are started in order, each as soon as an earlier one has ended."""
    ends = [0.0] * at_once
    for each in seconds:
        heapreplace(ends, ends[0] + each)
    return max(ends)
