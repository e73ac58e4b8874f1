"""`dqn verify`."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from pathlib import Path

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from atari_dqn.errors import DamagedError
from atari_dqn.files.atomic import json_document
from atari_dqn.formatting import duration, size
from atari_dqn.machine.devices import resolve_device
from atari_dqn.run.directory import RunDirectory
from atari_dqn.verify.proof import OnProgress, Verification, verify_run

_COLUMNS = 80
_LABEL_COLUMNS = 14


def verify(
    run_dir: Path, *, checkpoint: str | None, frames: int | None, device: str | None, as_json: bool
) -> None:
    """Check a run's files and prove that it repeats; exit code 4 where it does not."""
    run = RunDirectory.open(run_dir)
    chosen = resolve_device(device or run.recorded("device"))
    console = Console(stderr=True)
    with _bar(console) if console.is_terminal else nullcontext(_lines()) as on_progress:
        found = verify_run(
            run_dir, checkpoint=checkpoint, frames=frames, device=chosen, on_progress=on_progress
        )
    typer.echo(json_document(document(found)).decode().rstrip() if as_json else text(found))
    if found.verdict == "differs":
        raise typer.Exit(DamagedError.exit_code)


@contextmanager
def _bar(console: Console) -> Iterator[OnProgress]:
    """Show a bar for what is being done."""
    columns = (
        TextColumn("{task.description:<16}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda what, done, total: bar.update(task, description=what, completed=done, total=total)


def _lines() -> OnProgress:
    """Print a line for each quarter of what is being done."""
    printed: list[tuple[str, int]] = []

    def on_progress(what: str, done: int, total: int) -> None:
        quarter = what, 4 * done // max(total, 1)
        if quarter not in printed:
            printed.append(quarter)
            typer.echo(f"{what}: {25 * quarter[1]} %", err=True)

    return on_progress


def text(found: Verification) -> str:
    """Return what was compared and what came of it, in lines of up to 80 columns; the verdict comes last."""
    lines = [found.run]
    for label, told in _facts(found):
        lines += textwrap.wrap(
            told,
            _COLUMNS,
            initial_indent=f"  {label:<{_LABEL_COLUMNS - 2}}",
            subsequent_indent=" " * _LABEL_COLUMNS,
        )
    return "\n".join([*lines, *_verdict_lines(found)])


def _facts(found: Verification) -> list[tuple[str, str]]:
    checked, frames = found.checked, found.to_frames - found.from_frames
    checkpoints = f"{len(checked.checkpoints)} checkpoint{'s' * (len(checked.checkpoints) != 1)}"
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
    reasons = found.differences or found.caveats
    head = "differs:" if found.differences else "repeats, but is not called exact:"
    wrapped = [textwrap.wrap(reason, _COLUMNS - 4, initial_indent="- ") for reason in reasons]
    return [head, *(f"  {line}" for lines in wrapped for line in lines)]


def document(found: Verification) -> dict[str, object]:
    """Return a verification as plain data."""
    return {"verdict": found.verdict, **asdict(found)}
