"""`dqn tune`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from atari_dqn.cli.options import (
    AddressOption,
    DeviceOption,
    JobsOption,
    PlainOption,
    SiteOption,
    file_or_folder,
    integer,
    is_on_ray,
    refuse_ignored,
)
from atari_dqn.cli.tables import print_lines
from atari_dqn.envs.processes import interrupts_blocked
from atari_dqn.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from atari_dqn.machine.hardware import Hardware
    from atari_dqn.scale.tuning.opening import OpenedTune
    from atari_dqn.scale.tuning.tune import Tune

EXAMPLES = """\
dqn tune catch_learning_rate
dqn tune pong_learning_rate --plan
dqn tune catch_learning_rate --on ray
dqn tune outputs/catch_learning_rate --status"""


def _tunes() -> list[str]:
    from atari_dqn.spec.shipped import shipped_tunes

    return list(shipped_tunes())


TunePath = Annotated[
    Path,
    typer.Argument(
        metavar="TUNE|FOLDER",
        help="A tune file, the name of a shipped one, or the folder of a tune that has begun.",
        autocompletion=_tunes,
    ),
]
FolderOption = Annotated[
    Path | None, typer.Option(metavar="FOLDER", help="Folder of the trials. Default: outputs/NAME.")
]
PlanOption = Annotated[
    bool, typer.Option("--plan", help="Print the space, the objective and what a run needs; start nothing.")
]
StatusOption = Annotated[
    bool, typer.Option("--status", help="Print every trial, from the files of the folder; start nothing.")
]


def tune(
    tune: TunePath,
    folder: FolderOption = None,
    plan: PlanOption = False,
    status: StatusOption = False,
    on: SiteOption = "local",
    address: AddressOption = None,
    jobs: JobsOption = None,
    device: DeviceOption = "auto",
    plain: PlainOption = False,
) -> None:
    """Search for the best values of keys of a spec, and go on with a search that was stopped."""
    most = integer("--jobs", jobs)
    on_ray = is_on_ray(on, address, plan=plan, status=status)
    with interrupts_blocked():
        from atari_dqn.cli.tune_training import train_here
        from atari_dqn.machine.devices import check_device_name
        from atari_dqn.scale.tuning.plan import check_one_fits
        from atari_dqn.scale.tuning.study import require_extra

    require_extra()
    check_device_name(device)
    refuse_ignored("--plan", is_given=plan, plain=plain)
    refuse_ignored("--status", is_given=status, jobs=jobs is not None, device=device != "auto", plain=plain)
    found, path = _load(tune, folder)
    if status:
        _print_status(path)
        return
    if on_ray:
        _tune_on_ray(found, path, device, address, most, plain=plain)
        return
    hardware, devices = _machine(path, device)
    opened = _planned(found, path, hardware, devices)
    if plan:
        _print_plan(opened, hardware, devices, most)
        return
    check_one_fits(opened.record, hardware, devices)
    with opened.folder.locked():
        opened = _planned(found, path, hardware, devices)  # another command may have changed it meanwhile
        _begin(opened)
        train_here(opened, hardware, devices, jobs=most, plain=plain)


def _tune_on_ray(
    tune: Tune, path: Path, device: str, address: str | None, jobs: int | None, *, plain: bool
) -> None:
    """Train what is left on the nodes of a cluster, each of which is checked before anything starts."""
    with interrupts_blocked():
        from atari_dqn.cli.tune_training import train_on_ray
        from atari_dqn.cli.workers import joined_cluster
        from atari_dqn.scale.room import devices_of, hardware_with_device

    with joined_cluster(address, path) as cluster:
        nodes = cluster.describe([*cluster.alive()], path)
        device = _device(path, device)
        hardware = hardware_with_device(device, [node.hardware for node in nodes])
        devices = devices_of(device, hardware)
        opened = _planned(tune, path, hardware, devices)
        with opened.folder.locked():
            opened = _planned(tune, path, hardware, devices)
            cluster.check_folder(opened.folder.runs, nodes)
            _begin(opened)
            train_on_ray(opened, cluster, nodes, address=address, device=device, jobs=jobs, plain=plain)


def _load(path: Path, folder: Path | None) -> tuple[Tune, Path]:
    """Return the tune of a file, or of a folder in which it has begun, and its folder."""
    with interrupts_blocked():
        from atari_dqn.run.folder_kinds import is_tune
        from atari_dqn.scale.tuning.folder import TuneFolder, read_tune_record
        from atari_dqn.scale.tuning.tune_file import load_tune
        from atari_dqn.spec.shipped import shipped_tunes

    found = file_or_folder("tune", path, folder, shipped=shipped_tunes(), is_of_kind=is_tune)
    if found.is_dir():
        return read_tune_record(TuneFolder(found)).tune, found
    loaded = load_tune(found)
    return loaded, folder or Path("outputs") / loaded.name


def _print_status(path: Path) -> None:
    from atari_dqn.cli.tune_outcome import print_outcome
    from atari_dqn.run.folder_kinds import is_tune
    from atari_dqn.scale.tuning.folder import TuneFolder, read_tune_record
    from atari_dqn.scale.tuning.study import TrialLog

    if not is_tune(path):
        raise UserError(f"{path}: no tune has begun there; `dqn tune` begins it")
    folder = TuneFolder(path)
    record = read_tune_record(folder)
    print_outcome(record, folder, TrialLog(folder, record.tune, writable=False))


def _machine(path: Path, device: str) -> tuple[Hardware, Sequence[str]]:
    """Return the hardware and the devices for runs of this machine."""
    with interrupts_blocked():
        from atari_dqn.scale.room import devices_of, find_sweep_hardware

    hardware = find_sweep_hardware(path)
    return hardware, devices_of(_device(path, device), hardware)


def _device(path: Path, device: str) -> str:
    """Return the device of a command: for `auto` that of the folder, if it has a tune."""
    from atari_dqn.run.folder_kinds import is_tune
    from atari_dqn.scale.tuning.folder import TuneFolder, read_tune_record

    if device == "auto" and is_tune(path):
        return read_tune_record(TuneFolder(path)).device
    return device


def _planned(tune: Tune, path: Path, hardware: Hardware, devices: Sequence[str]) -> OpenedTune:
    """Return the tune with its record; write nothing."""
    from atari_dqn.scale.tuning.opening import plan_tune

    return plan_tune(tune, path, device=devices[0].partition(":")[0], hardware=hardware)


def _print_plan(opened: OpenedTune, hardware: Hardware, devices: Sequence[str], jobs: int | None) -> None:
    from atari_dqn.scale.tuning.plan import plan_lines

    print_lines(map(str, opened.choices))
    print_lines(plan_lines(opened.record, hardware, devices, jobs=jobs))


def _begin(opened: OpenedTune) -> None:
    from atari_dqn.scale.tuning.folder import write_tune_record

    print_lines(map(str, opened.choices))
    write_tune_record(opened.folder, opened.record)
