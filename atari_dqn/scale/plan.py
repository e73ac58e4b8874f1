"""Plan a sweep: what each run takes, how long it lasts at a measured rate, and how many fit at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapreplace
from statistics import median

from atari_dqn.formatting import duration, size
from atari_dqn.machine.hardware import Hardware
from atari_dqn.run.sweep.record import Member, SweepRecord
from atari_dqn.run.sweep.status import ENDED, SweepStatus
from atari_dqn.run.threads import check_threads
from atari_dqn.scale.room import Disk, Need, Needs, Room
from atari_dqn.spec.keys import build

_NAME_COLUMNS = 44


@dataclass(frozen=True, kw_only=True)
class PlannedRun:
    """What one run needs until its end."""

    name: str
    state: str
    frames_left: int
    frames_per_second: float | None
    """Measured; None if no rate is known."""
    need: Need

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
    known = {**rates, **_rates_of(status)}
    states = {} if status is None else {each.member.name: each for each in status.members}
    runs = []
    for member in record.members:
        found = states.get(member.name)
        frames_left = member.total_frames if found is None else found.total_frames - found.env_frames
        runs.append(
            PlannedRun(
                name=member.name,
                state="waiting" if found is None else found.state,
                frames_left=max(0, frames_left),
                frames_per_second=known.get(member.label),
                need=needs.of(member, devices[0]),
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


def _rates_of(status: SweepStatus | None) -> dict[str, float]:
    """Return the median rate of the runs of each label that have one."""
    rates: dict[str, list[float]] = {}
    for each in () if status is None else status.members:
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


def measured_rates(record: SweepRecord, device: str, *, within_seconds: float) -> dict[str, float]:
    """Measure the rate of each label alone on this machine; imports torch in another process."""
    from atari_dqn.train.estimate import estimate_rate

    rates = {}
    for member in {member.label: member for member in record.members}.values():
        found = estimate_rate(build(member.values), device, within_seconds=within_seconds)
        if found.frames_per_second is not None:
            rates[member.label] = found.frames_per_second
    return rates


def plan_text(plan: SweepPlan) -> str:
    """Format a plan: a line for each run, then the sums."""
    return "\n".join([*_table(plan), "", *_sums(plan)])


def _table(plan: SweepPlan) -> Iterator[str]:
    width = min(_NAME_COLUMNS, max([3, *(len(run.name) for run in plan.runs)]))
    vram = f"{'VRAM':>10}" if plan.device != "cpu" else ""
    head = f"{'run':<{width}}  {'state':<9}{'frames left':>12}{'time':>9}{'cores':>6}"
    yield f"{head}{'RAM':>10}{vram}{'disk':>10}"
    for run in plan.runs:
        time = "-" if run.seconds is None else duration(run.seconds)
        vram = f"{size(run.need.vram):>10}" if plan.device != "cpu" else ""
        yield (
            f"{run.name:<{width}}  {run.state:<9}{run.frames_left:>12,}{time:>9}{run.need.cores:>6}"
            f"{size(run.need.ram):>10}{vram}{size(run.need.disk):>10}"
        )


def _sums(plan: SweepPlan) -> Iterator[str]:
    left, frames_left = plan.left, sum(run.frames_left for run in plan.left)
    yield f"{len(plan.runs):,} runs, {len(left):,} of them to do: {frames_left:,} frames"
    if left:
        limit = f"; one more would lack {' and '.join(plan.limited_by)}" if plan.limited_by else ""
        yield f"at once here: {plan.at_once}, on {plan.cores} cores{limit}"
        yield _time(plan)
    disk = sum(run.need.disk for run in left)
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
