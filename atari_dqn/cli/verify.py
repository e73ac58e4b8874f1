"""`dqn verify`."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from atari_dqn.cli.options import JsonOption, OwnDeviceOption, RunPath, integer
from atari_dqn.envs.processes import interrupts_blocked
from atari_dqn.errors import DamagedError
from atari_dqn.formatting import duration, plural, size
from atari_dqn.machine.devices import check_device_name, resolve_device

if TYPE_CHECKING:
    from atari_dqn.verify.proof import OnProgress, Verification

EXAMPLES = """\
dqn verify outputs/pong_quick_seed1
dqn verify outputs/pong_quick_seed1 --checkpoint beginning --frames 20k"""

_COLUMNS = 80
_LABEL_COLUMNS = 14
_ACTIVITY_COLUMNS = 16
_HEADS = {
    "differs": "differs:",
    "inexact": "does not repeat, as is expected of this run:",
    "repeats": "repeats, but is not called exact:",
}
"""The line before the reasons, by verdict."""


def verify(
    run_dir: RunPath,
    checkpoint: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Start from latest, best, step_… or beginning. Default: one that can be compared.",
        ),
    ] = None,
    frames: Annotated[
        str | None,
        typer.Option(
            metavar="FRAMES",
            help="Emulator frames to train for, within the run. Default: 10,000 with learning.",
        ),
    ] = None,
    device: OwnDeviceOption = None,
    json: JsonOption = False,
) -> None:
    """Check the files of a run, and that training from a checkpoint repeats exactly."""
    num_frames = integer("--frames", frames)
    check_device_name(device)
    with interrupts_blocked():
        from atari_dqn.run.directory import RunDirectory

    run = RunDirectory.open(run_dir)
    with interrupts_blocked():
        from atari_dqn.files.atomic import json_document
        from atari_dqn.verify.proof import verify_run
        from atari_dqn.view.bar import is_shown, progress_bar

    chosen = resolve_device(device or run.recorded("device"))
    bar = progress_bar(width=_ACTIVITY_COLUMNS, percent=True) if is_shown() else nullcontext(_lines())
    with bar as on_progress:
        found = verify_run(
            run_dir, checkpoint=checkpoint, frames=num_frames, device=chosen, on_progress=on_progress
        )
    typer.echo(json_document(document(found)).decode().rstrip() if json else text(found))
    if found.verdict == "differs":
        raise typer.Exit(DamagedError.exit_code)


def _lines() -> OnProgress:
    """Print a line for each quarter of an activity."""
    printed: list[tuple[str, int]] = []

    def on_progress(activity: str, done: int, total: int) -> None:
        quarter = activity, 4 * done // max(total, 1)
        if quarter not in printed:
            printed.append(quarter)
            typer.echo(f"{activity}: {25 * quarter[1]} %", err=True)

    return on_progress


def text(found: Verification) -> str:
    """Format a verification in lines of up to 80 columns, the verdict and its reasons last."""
    lines = [found.run]
    for label, fact in _facts(found):
        lines += textwrap.wrap(
            fact,
            _COLUMNS,
            initial_indent=f"  {label:<{_LABEL_COLUMNS - 2}}",
            subsequent_indent=" " * _LABEL_COLUMNS,
        )
    return "\n".join([*lines, *_verdict_lines(found)])


def _facts(found: Verification) -> list[tuple[str, str]]:
    checked, frames = found.checked, found.to_frames - found.from_frames
    checkpoints = plural(len(checked.checkpoints), "checkpoint")
    rows = ", ".join(f"{count} {table.removesuffix('_log')}" for table, count in found.rows.items())
    return [
        ("files", f"{checkpoints}, {checked.files} files, {size(checked.bytes)}: as they were written"),
        ("from", f"{found.checkpoint}, {found.from_frames:,} frames"),
        ("played on", f"{frames:,} frames, twice, in fresh processes, {duration(found.seconds)} each"),
        ("learned", f"{found.updates:,} updates within these frames"),
        ("state", f"{found.state_parts} parts, digest {found.state_digest[:16]}…"),
        ("log rows", f"{rows}; {sum(found.own_rows.values())} of them are also in the run's own logs"),
        ("recorded", ", ".join(found.recorded) or "no later checkpoint within these frames"),
        ("evaluation", f"one game, return {', '.join(f'{value:g}' for value in found.returns)}"),
    ]


def _verdict_lines(found: Verification) -> list[str]:
    if found.verdict == "exact":
        return ["exact: all of it is the same to the last bit"]
    head, reasons = _HEADS[found.verdict], found.differences or found.caveats
    lines = [head, *_list(reasons)]
    return [*lines, "caveats:", *_list(found.caveats)] if found.differences and found.caveats else lines


def _list(reasons: Sequence[str]) -> list[str]:
    wrapped = [textwrap.wrap(reason, _COLUMNS - 4, initial_indent="- ") for reason in reasons]
    return [f"  {line}" for lines in wrapped for line in lines]


def document(found: Verification) -> dict[str, object]:
    """Convert a verification to plain data."""
    return {"verdict": found.verdict, **asdict(found)}
