"""`dqn doctor`."""

from __future__ import annotations

from pathlib import Path

import typer

from atari_dqn.bench.doctor import diagnosis_text, examine

_MEASURED_SECONDS = 6.0


def doctor(*, measure: bool) -> None:
    """Print what this machine has, and which settings suit it; exit code 1 if something is broken."""
    diagnosis = examine(Path.cwd(), measured_seconds=_MEASURED_SECONDS if measure else 0.0)
    typer.echo(diagnosis_text(diagnosis))
    if not diagnosis.healthy:
        raise typer.Exit(1)
