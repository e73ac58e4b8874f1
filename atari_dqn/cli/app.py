"""The program `dqn`: its commands, and how their errors reach a user.

Exit codes: 0 done · 2 wrong input · 3 halted · 4 damaged files · 129/130/143 interrupted, after a checkpoint.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any

import typer

from atari_dqn import __version__
from atari_dqn.cli import look_commands, run_commands, score_commands
from atari_dqn.cli import spec as spec_commands
from atari_dqn.cli.streams import leave_stdout, show_what_can_be_shown
from atari_dqn.printable import printable_lines

app = typer.Typer(
    name="dqn",
    help="Train, resume and evaluate DQN-family agents on Atari.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
COMMANDS: dict[str, Callable[..., None]] = {
    "train": run_commands.train,
    "resume": run_commands.resume,
    "eval": score_commands.evaluate,
    "record": score_commands.record,
    "compare": score_commands.compare,
    "verify": run_commands.verify,
    "bench": run_commands.bench,
    "watch": look_commands.watch,
    "dashboard": look_commands.dashboard,
    "doctor": look_commands.doctor,
}
"""Every command by its name, in the order of the help. A command imports what it needs when it runs."""


def _interruptible(command: Callable[..., None]) -> Callable[..., None]:
    """Have Ctrl-C end a command in words; typer would end the program in silence."""

    @wraps(command)
    def run(*arguments: Any, **options: Any) -> None:
        try:
            command(*arguments, **options)
        except KeyboardInterrupt:
            print("interrupted; what had been saved before is whole", file=sys.stderr)  # noqa: T201
            raise typer.Exit(130) from None

    return run


for name, command in COMMANDS.items():
    app.command(name=name)(_interruptible(command))
app.add_typer(spec_commands.app, name="spec")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"atari_dqn {__version__}")
        raise typer.Exit


@app.callback()
def program(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Train, resume and evaluate DQN-family agents on Atari."""


def main() -> None:
    """Run the program; end with the exit code its errors carry, and never with a traceback for a user's."""
    from atari_dqn.errors import DamagedError, HaltedError, InterruptedRunError, UserError

    show_what_can_be_shown()
    try:
        app()
        sys.stdout.flush()
    except (UserError, HaltedError, DamagedError) as error:
        print(f"error: {printable_lines(str(error))}", file=sys.stderr)  # noqa: T201 - the program's own output
        sys.exit(error.exit_code)
    except InterruptedRunError as interruption:
        told = "\n".join([str(interruption), *interruption.__notes__])
        print(printable_lines(told), file=sys.stderr)  # noqa: T201
        sys.exit(interruption.exit_code)
    except OSError as error:
        leave_stdout(error)
