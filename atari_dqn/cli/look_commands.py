"""Commands that look, and change nothing: `watch`, `doctor`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from atari_dqn.cli.options import PlainOption
from atari_dqn.interrupts import interrupts_blocked


def doctor() -> None:
    """Say what this machine has, and which settings suit it."""
    with interrupts_blocked():
        from atari_dqn.cli.doctor import doctor as run

    run()


def watch(
    run_dirs: Annotated[
        list[Path], typer.Argument(metavar="RUN_DIR...", help="Runs, training here or elsewhere.")
    ],
    every: Annotated[float, typer.Option(min=0.1, metavar="SECONDS", help="Time between looks.")] = 2.0,
    once: Annotated[bool, typer.Option("--once", help="Show how things are now, and end.")] = False,
    plain: PlainOption = False,
) -> None:
    """Show a run as `dqn train` does, from its files alone; several as a table."""
    with interrupts_blocked():
        from atari_dqn.cli.watch import watch as run

    run(run_dirs, every_seconds=every, once=once, plain=plain)
