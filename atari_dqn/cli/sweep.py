"""`dqn sweep`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from atari_dqn.cli.options import (
    LONGEST_SECONDS,
    AddressOption,
    DeviceOption,
    JobsOption,
    PlainOption,
    SiteOption,
    file_or_folder,
    integer,
    is_on_ray,
    number,
    refuse_ignored,
)
from atari_dqn.cli.tables import print_lines, print_table
from atari_dqn.envs.processes import interrupts_blocked
from atari_dqn.errors import UserError
from atari_dqn.formatting import plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from atari_dqn.machine.hardware import Hardware
    from atari_dqn.scale.members import Sweep
    from atari_dqn.scale.opening import OpenedSweep
    from atari_dqn.scale.plan import SweepPlan

EXAMPLES = """\
dqn sweep catch_n_step
dqn sweep atari100k_der --plan
dqn sweep outputs/catch_n_step --status"""

_SHORTEST_SECONDS = 0.1
_MEASURING_SECONDS = 20.0
"""Longest time for measuring the speed of one method; small specs take a quarter of it."""


def _sweeps() -> list[str]:
    from atari_dqn.spec.shipped import shipped_sweeps

    return list(shipped_sweeps())


SweepPath = Annotated[
    Path,
    typer.Argument(
        metavar="SWEEP|FOLDER",
        help="A sweep file, the name of a shipped one, or the folder of a sweep that has begun.",
        autocompletion=_sweeps,
    ),
]
FolderOption = Annotated[
    Path | None, typer.Option(metavar="FOLDER", help="Folder of the runs. Default: outputs/NAME.")
]
PlanOption = Annotated[
    bool,
    typer.Option(
        "--plan", help="Print memory and disk of every run, with --measure time too; start nothing."
    ),
]
MeasureOption = Annotated[
    bool, typer.Option("--measure", help="With --plan: measure the speed of each method.")
]
StatusOption = Annotated[
    bool, typer.Option("--status", help="Print the state of every run from its files; start nothing.")
]
RetryOption = Annotated[
    bool, typer.Option("--retry", help="Try runs again that halted, failed or are damaged.")
]
HeartbeatOption = Annotated[
    str,
    typer.Option(metavar="SECONDS", help="Period of the leases; a run is taken over after three of them."),
]


def sweep(
    sweep: SweepPath,
    folder: FolderOption = None,
    plan: PlanOption = False,
    measure: MeasureOption = False,
    status: StatusOption = False,
    on: SiteOption = "local",
    address: AddressOption = None,
    jobs: JobsOption = None,
    device: DeviceOption = "auto",
    retry: RetryOption = False,
    heartbeat: HeartbeatOption = "5",
    plain: PlainOption = False,
) -> None:
    """Train every run of a sweep file, several at once, and go on with those that were stopped."""
    most, period = integer("--jobs", jobs), _period(heartbeat)
    from atari_dqn.machine.devices import check_device_name

    on_ray = is_on_ray(on, address, plan=plan, status=status)
    if measure and not plan:
        raise UserError("--measure: expected with --plan")
    if retry and (plan or status):
        raise UserError("--retry: expected without --plan and --status, which start nothing")
    check_device_name(device)
    others = {"plain": plain, "heartbeat": heartbeat != "5"}
    refuse_ignored("--plan", is_given=plan, **others)
    refuse_ignored("--status", is_given=status, jobs=jobs is not None, device=device != "auto", **others)
    loaded, path = _load(sweep, folder)
    if status:
        _print_status(path)
        return
    if on_ray:
        _sweep_on_ray(loaded, path, device, address, most, period, retry=retry, plain=plain)
        return
    hardware = _hardware(path)
    devices, opened = _planned(loaded, path, device, hardware)
    planned = _plan(opened, hardware, devices, most, measure=measure)
    if plan:
        _print_plan(opened, planned)
        return
    _check_all_fit(opened, planned)
    opened = _begin(loaded, opened, path, hardware, retry=retry)
    from atari_dqn.cli.sweep_training import train_here

    train_here(opened, hardware, devices, jobs=most, period_seconds=period, plain=plain)


def _period(heartbeat: str) -> float:
    return number("--heartbeat", heartbeat, low=_SHORTEST_SECONDS, high=LONGEST_SECONDS)


def _sweep_on_ray(
    loaded: Sweep | None,
    path: Path,
    device: str,
    address: str | None,
    jobs: int | None,
    period_seconds: float,
    *,
    retry: bool,
    plain: bool,
) -> None:
    """Train what is left on the nodes of a cluster, each of which is checked before anything starts."""
    with interrupts_blocked():
        from atari_dqn.cli.sweep_training import train_on_ray
        from atari_dqn.cli.workers import joined_cluster
        from atari_dqn.scale.room import hardware_with_device

    with joined_cluster(address, path) as cluster:
        nodes = cluster.describe([*cluster.alive()], path)
        hardware = hardware_with_device(device, [node.hardware for node in nodes])
        _, opened = _planned(loaded, path, device, hardware)
        opened = _begin(loaded, opened, path, hardware, retry=retry)
        cluster.check_folder(opened.folder, nodes)
        train_on_ray(
            opened,
            cluster,
            nodes,
            address=address,
            device=device,
            jobs=jobs,
            period_seconds=period_seconds,
            plain=plain,
        )


def _load(path: Path, folder: Path | None) -> tuple[Sweep | None, Path]:
    """Return the sweep of a file and its folder; None for a folder, whose record is the sweep."""
    with interrupts_blocked():
        from atari_dqn.run.sweep.folder import is_sweep
        from atari_dqn.scale.members import load_sweep
        from atari_dqn.spec.shipped import shipped_sweeps

    found = file_or_folder("sweep", path, folder, shipped=shipped_sweeps(), is_of_kind=is_sweep)
    if found.is_dir():
        return None, found
    loaded = load_sweep(found)
    return loaded, folder or Path("outputs") / loaded.name


def _print_status(path: Path) -> None:
    from atari_dqn.run.sweep.folder import is_sweep
    from atari_dqn.run.sweep.status import SweepStatus
    from atari_dqn.view.sweep_text import status_lines

    if not is_sweep(path):
        raise UserError(f"{path}: no sweep has begun there; `dqn sweep` begins it")
    found = SweepStatus(path)
    found.refresh()
    print_table(partial(status_lines, found))


def _hardware(path: Path) -> Hardware:
    with interrupts_blocked():
        from atari_dqn.scale.room import find_sweep_hardware

    return find_sweep_hardware(path)


def _planned(
    loaded: Sweep | None, path: Path, device: str, hardware: Hardware
) -> tuple[Sequence[str], OpenedSweep]:
    """Return the devices for runs, and the sweep with its record; write nothing."""
    with interrupts_blocked():
        from atari_dqn.run.sweep.folder import SweepFolder, is_sweep
        from atari_dqn.run.sweep.record import read_record
        from atari_dqn.scale.opening import OpenedSweep, check_device, plan_sweep
        from atari_dqn.scale.room import devices_of

    record = read_record(SweepFolder(path).record) if is_sweep(path) else None
    devices = devices_of(record.device if record is not None and device == "auto" else device, hardware)
    kind = devices[0].partition(":")[0]
    if loaded is not None:
        return devices, plan_sweep(loaded, path, device=kind, hardware=hardware)
    assert record is not None, "a folder without a record is refused before"
    check_device(record, kind, SweepFolder(path))
    return devices, OpenedSweep(folder=SweepFolder(path), record=record)


def _plan(
    opened: OpenedSweep, hardware: Hardware, devices: Sequence[str], jobs: int | None, *, measure: bool
) -> SweepPlan:
    from atari_dqn.run.sweep.folder import is_sweep
    from atari_dqn.run.sweep.status import SweepStatus
    from atari_dqn.scale.plan import make_sweep_plan, measured_rates

    status = None
    if is_sweep(opened.folder.path):
        status = SweepStatus(opened.folder.path)
        status.refresh()
    make = partial(
        make_sweep_plan, opened.record, hardware=hardware, devices=devices, status=status, jobs=jobs
    )
    planned = make(rates={})
    if not measure:
        return planned
    unfit = {run.name for run in planned.unfit}
    fitting = [member for member in opened.record.members if member.name not in unfit]
    return make(rates=measured_rates(fitting, devices[0], within_seconds=_MEASURING_SECONDS))


def _print_plan(opened: OpenedSweep, planned: SweepPlan) -> None:
    """Print a plan; `UserError` after it if the sweep would be refused."""
    from atari_dqn.scale.plan import plan_lines

    print_lines(map(str, opened.choices))
    print_table(partial(plan_lines, planned))
    _check_all_fit(opened, planned)


def _check_all_fit(opened: OpenedSweep, planned: SweepPlan) -> None:
    """Refuse a sweep with runs that this machine cannot hold, unless other hosts train runs of it now."""
    unfit = planned.unfit
    if not unfit:
        return
    more = len(unfit) - 1
    who = f"{unfit[0].name} and {plural(more, 'run')} more do" if more else f"{unfit[0].name} does"
    lacking = " and ".join(dict.fromkeys(what for run in unfit for what in run.lacking))
    problem = f"{who} not fit: this machine has too little {lacking}"
    if not all(lease.owner.is_here for lease in opened.folder.leases.current().values()):
        print_lines([f"{problem}; left to the other hosts that work on the sweep"])
        return
    raise UserError(
        f"{problem}; see --plan. Lower the keys that need it, or take it out of the sweep; where several "
        "hosts share the folder, begin on one that has enough"
    )


def _begin(
    loaded: Sweep | None, planned: OpenedSweep, path: Path, hardware: Hardware, *, retry: bool
) -> OpenedSweep:
    """Open the sweep in its folder, and report what is new and what does not belong any more."""
    from atari_dqn.scale.opening import open_sweep, reopen_sweep

    if loaded is None:
        opened = reopen_sweep(path)
    else:
        opened = open_sweep(loaded, path, device=planned.record.device, hardware=hardware)
        print_lines(map(str, opened.choices))
        print_lines(
            f"{member.name} is not in {loaded.path} any more; it is kept, and not continued"
            for member in opened.record.former
        )
    if retry:
        for member in opened.record.members:
            opened.folder.failure(member.name).unlink(missing_ok=True)
    return opened
