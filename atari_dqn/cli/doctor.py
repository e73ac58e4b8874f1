"""`dqn doctor`."""

from __future__ import annotations

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


def doctor(
    measure: Annotated[
        bool, typer.Option("--measure", help="Time updates for some seconds: threads and precision.")
    ] = False,
) -> None:
    """Show the hardware and software of this machine, and the settings that suit it."""
    with interrupts_blocked():
        from atari_dqn.bench.doctor import diagnosis_text, examine

    diagnosis = examine(Path.cwd(), measured_seconds=_MEASURED_SECONDS if measure else 0.0)
    typer.echo(diagnosis_text(diagnosis))
    if not diagnosis.healthy:
        raise typer.Exit(_BROKEN)
