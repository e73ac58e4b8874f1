"""`dqn doctor`."""

from __future__ import annotations

from pathlib import Path

import typer

from atari_dqn.doctor import diagnosis_text, examine


def doctor() -> None:
    """Print what this machine has, and which settings suit it; exit code 1 if something is broken."""
    diagnosis = examine(Path.cwd())
    typer.echo(diagnosis_text(diagnosis))
    if not diagnosis.healthy:
        raise typer.Exit(1)
