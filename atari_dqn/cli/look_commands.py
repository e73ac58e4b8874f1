"""Commands that look, and change nothing: `watch`, `dashboard`, `doctor`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from atari_dqn.cli.options import PlainOption
from atari_dqn.interrupts import interrupts_blocked


def doctor(
    measure: Annotated[
        bool, typer.Option("--measure", help="Time updates for some seconds: threads and precision.")
    ] = False,
) -> None:
    """Say what this machine has, and which settings suit it."""
    with interrupts_blocked():
        from atari_dqn.cli.doctor import doctor as run

    run(measure=measure)


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


def dashboard(
    root: Annotated[Path, typer.Argument(metavar="[ROOT]", help="A folder of runs.")] = Path("outputs"),
    host: Annotated[
        str, typer.Option(help="The address to serve on; other machines need the token that is printed.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65_535, help="The port to serve on.")] = 8642,
    token: Annotated[
        str | None, typer.Option(envvar="DQN_TOKEN", help="Ask for this token. Default: on loopback, none.")
    ] = None,
) -> None:
    """Show every run below a folder in a browser: curves, videos, comparisons, differences, live."""
    from atari_dqn.cli.dashboard import dashboard as run

    run(root, host=host, port=port, token=token)
