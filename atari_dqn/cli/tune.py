"""`dqn tune`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from atari_dqn.cli.options import DeviceOption, JobsOption, PlainOption, integer
from atari_dqn.envs.processes import interrupts_blocked
from atari_dqn.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from atari_dqn.machine.hardware import Hardware
    from atari_dqn.scale.local import LocalWorkers
    from atari_dqn.scale.tuning.opening import OpenedTune
    from atari_dqn.scale.tuning.tune import Tune

EXAMPLES = """\
dqn tune catch_learning_rate
dqn tune pong_learning_rate --plan
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
    jobs: JobsOption = None,
    device: DeviceOption = "auto",
    plain: PlainOption = False,
) -> None:
    """Search for the best values of keys of a spec, and go on with a search that was stopped."""
    most = integer("--jobs", jobs)
    if plan and status:
        raise UserError("--plan and --status: expected one of them")
    with interrupts_blocked():
        from atari_dqn.scale.tuning.plan import check_one_fits
        from atari_dqn.scale.tuning.study import require_extra

    require_extra()
    found, path = _load(tune, folder)
    if status:
        _print_status(path)
        return
    hardware, devices = _machine(path, device)
    opened = _planned(found, path, hardware, devices)
    if plan:
        _print_plan(opened, hardware, devices)
        return
    check_one_fits(opened.record, hardware, devices)
    with opened.folder.locked():
        opened = _planned(found, path, hardware, devices)  # another command may have changed it meanwhile
        _begin(opened)
        _run(opened, hardware, devices, jobs=most, plain=plain)


def _load(path: Path, folder: Path | None) -> tuple[Tune, Path]:
    """Return the tune of a file, or of a folder in which it has begun, and its folder."""
    with interrupts_blocked():
        from atari_dqn.scale.tuning.folder import TuneFolder, is_tune, read_tune_record
        from atari_dqn.scale.tuning.tune_file import find_tune, load_tune

    found = find_tune(path)
    if not found.is_dir():
        loaded = load_tune(found)
        return loaded, folder or Path("outputs") / loaded.name
    if folder is not None:
        raise UserError(
            f"--folder: found {folder}, although {path} is a folder; name a tune file, or no --folder"
        )
    if not is_tune(found):
        raise UserError(
            f"{path}: is not the folder of a tune; expected a tune file, or a folder it was begun in"
        )
    return read_tune_record(TuneFolder(found)).tune, found


def _print_status(path: Path) -> None:
    from atari_dqn.cli.tune_outcome import print_outcome
    from atari_dqn.scale.tuning.folder import TuneFolder, is_tune, read_tune_record
    from atari_dqn.scale.tuning.study import TrialLog

    if not is_tune(path):
        raise UserError(f"{path}: no tune has begun there; `dqn tune` begins it")
    folder = TuneFolder(path)
    record = read_tune_record(folder)
    print_outcome(record, folder, TrialLog(folder, record.tune, writable=False))


def _machine(path: Path, device: str) -> tuple[Hardware, Sequence[str]]:
    """Return the hardware and the devices for runs: those of the folder, if it has a tune."""
    with interrupts_blocked():
        from atari_dqn.machine.devices import check_device_name
        from atari_dqn.scale.room import devices_of, find_sweep_hardware
        from atari_dqn.scale.tuning.folder import TuneFolder, is_tune, read_tune_record

    check_device_name(device)
    hardware = find_sweep_hardware(path)
    if device == "auto" and is_tune(path):
        device = read_tune_record(TuneFolder(path)).device
    return hardware, devices_of(device, hardware)


def _planned(tune: Tune, path: Path, hardware: Hardware, devices: Sequence[str]) -> OpenedTune:
    """Return the tune with its record; write nothing."""
    from atari_dqn.scale.tuning.opening import plan_tune

    return plan_tune(tune, path, device=devices[0].partition(":")[0], hardware=hardware)


def _print_plan(opened: OpenedTune, hardware: Hardware, devices: Sequence[str]) -> None:
    from atari_dqn.scale.tuning.plan import plan_lines

    for choice in opened.choices:
        typer.echo(str(choice))
    typer.echo("\n".join(plan_lines(opened.record, hardware, devices)))


def _begin(opened: OpenedTune) -> None:
    from atari_dqn.scale.tuning.folder import write_tune_record

    for choice in opened.choices:
        typer.echo(str(choice))
    write_tune_record(opened.folder, opened.record)


def _workers(
    opened: OpenedTune,
    hardware: Hardware,
    devices: Sequence[str],
    jobs: int | None,
    report: Callable[[str], None],
) -> LocalWorkers:
    """Return the workers of this machine."""
    with interrupts_blocked():
        from threading import Event

        from atari_dqn.run.leases.owner import Owner
        from atari_dqn.scale.local import LocalWorkers
        from atari_dqn.scale.room import Needs, Room
        from atari_dqn.scale.runner import Runner

    threads = opened.record.tune.threads
    return LocalWorkers(
        runner=Runner(folder=opened.folder.runs, owner=Owner.current(), stop=Event(), report=report),
        room=Room(hardware, devices),
        needs=Needs(hardware, threads),
        threads=threads,
        jobs=jobs,
    )


def _run(
    opened: OpenedTune, hardware: Hardware, devices: Sequence[str], *, jobs: int | None, plain: bool
) -> None:
    """Run trials until the budget is used up, and print the outcome."""
    with interrupts_blocked():
        from contextlib import closing

        from atari_dqn.cli.tune_outcome import conclude
        from atari_dqn.scale.tuning.folder import Stopwatch
        from atari_dqn.scale.tuning.progress import TuneProgress
        from atari_dqn.scale.tuning.ranking import standing
        from atari_dqn.scale.tuning.study import TrialLog
        from atari_dqn.scale.tuning.tuner import Tuner
        from atari_dqn.train.interrupt import SignalGuard
        from atari_dqn.view.text_view import text_view

    folder, record = opened.folder, opened.record
    reports: list[str] = []
    workers = _workers(opened, hardware, devices, jobs, reports.append)
    log = TrialLog(folder, record.tune, writable=True)
    progress = TuneProgress(lambda: standing(record, folder, log), lambda: workers.running, folder.runs)
    with (
        SignalGuard() as guard,
        closing(text_view(progress.screen, progress.news, sys.stdout, plain=plain)) as view,
    ):

        def show() -> None:
            while reports:
                view.report(reports.pop(0))
            view.show()

        tuner = Tuner(
            record=record,
            folder=folder,
            log=log,
            workers=workers,
            stopwatch=Stopwatch(folder),
            is_interrupted=lambda: guard.received is not None,
            show=show,
        )
        result = tuner.run()
    conclude(record, folder, log, result, guard.received)
