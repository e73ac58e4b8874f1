"""`dqn doctor`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from atari_dqn.envs.processes import interrupts_blocked

EXAMPLES = """\
dqn doctor
dqn doctor --measure"""

_BROKEN = 1
"""Exit code if the machine lacks something that training needs."""
_MEASURED_SECONDS = 6.0
_MOST_COLUMNS = 80


def doctor(
    measure: Annotated[
        bool, typer.Option("--measure", help="Time updates for some seconds: threads and precision.")
    ] = False,
) -> None:
    """Show the hardware and software of this machine, and the settings that suit it."""
    with interrupts_blocked():
        from atari_dqn.bench.doctor import diagnosis_text, examine
        from atari_dqn.view.wrapping import terminal_columns

    diagnosis = examine(Path.cwd(), measured_seconds=_MEASURED_SECONDS if measure else 0.0)
    columns = terminal_columns(sys.stdout)
    typer.echo(diagnosis_text(diagnosis, min(columns, _MOST_COLUMNS) if columns else _MOST_COLUMNS))
    if not diagnosis.healthy:
        raise typer.Exit(_BROKEN)
