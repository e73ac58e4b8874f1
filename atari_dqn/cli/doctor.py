"""`dqn doctor`."""

from __future__ import annotations

from pathlib import Path

import typer

from atari_dqn.doctor import diagnosis_text, examine


def doctor() -> None:
    """Print what this machine has, and which settings suit it."""
    typer.echo(diagnosis_text(examine(Path.cwd())))
