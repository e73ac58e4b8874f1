"""Commands that look, and change nothing: `watch`, `dashboard`, `doctor`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from atari_dqn.cli.options import PlainOption, integer, number
from atari_dqn.envs.processes import interrupts_blocked

_SHORTEST_SECONDS = 0.1
_LAST_PORT = 65_535


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
    run_dirs: Annotated[list[Path], typer.Argument(metavar="RUN_DIR...", help="Runs, or folders of runs.")],
    every: Annotated[str, typer.Option(metavar="SECONDS", help="Time between looks.")] = "2",
    once: Annotated[bool, typer.Option("--once", help="Show how things are now, and end.")] = False,
    plain: PlainOption = False,
) -> None:
    """Show a run as `dqn train` does, from its files alone; several as a table."""
    every_seconds = number("--every", every, low=_SHORTEST_SECONDS)
    with interrupts_blocked():
        from atari_dqn.cli.watch import watch as run

    run(run_dirs, every_seconds=every_seconds, once=once, plain=plain)


def dashboard(
    root: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="A folder of runs. Default: outputs.")
    ] = Path("outputs"),
    host: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS", help="The address to serve on; others than loopback need the printed token."
        ),
    ] = "127.0.0.1",
    port: Annotated[str, typer.Option(metavar="PORT", help="The port to serve on.")] = "8642",
    token: Annotated[
        str | None,
        typer.Option(
            metavar="TOKEN", envvar="DQN_TOKEN", help="Ask for this token. Default: on loopback, none."
        ),
    ] = None,
) -> None:
    """Show every run below a folder in a browser: curves, videos, comparisons, differences, live."""
    number_of_port = integer("--port", port, high=_LAST_PORT)
    from atari_dqn.cli.dashboard import dashboard as run

    run(root, host=host, port=number_of_port, token=token)
