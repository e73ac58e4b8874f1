"""The program `dqn`: its commands, and how their errors reach a user.

Exit codes: 0 done · 2 wrong input · 3 halted · 4 damaged files · 129/130/143 interrupted, after a checkpoint.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from typing import Annotated

import typer

from atari_dqn import __version__
from atari_dqn.cli import look_commands, run_commands, score_commands
from atari_dqn.cli import spec as spec_commands
from atari_dqn.cli.command import SETTINGS, Command, Group
from atari_dqn.cli.examples import EXAMPLES
from atari_dqn.cli.start import raise_on_interrupt
from atari_dqn.cli.streams import is_of_output, leave_output, prepare_streams, say
from atari_dqn.errors import DamagedError, HaltedError, InterruptedRunError, UserError

NAME = "dqn"
_COMPLETION = "_DQN_COMPLETE"
_INTERRUPTED = 130
_SHORT_OF = {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN}
"""What a machine or a limit has too little of; such an error often has no file."""

app = typer.Typer(
    name=NAME, cls=Group, context_settings=SETTINGS, pretty_exceptions_enable=False, rich_markup_mode=None
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

for name, command in COMMANDS.items():
    app.command(name, cls=Command, epilog=EXAMPLES[name])(command)
app.add_typer(spec_commands.app, name="spec", epilog=EXAMPLES["spec"])


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"atari_dqn {__version__}")
        raise typer.Exit


@app.callback(epilog=EXAMPLES[""])
def program(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Train, resume and evaluate DQN-family agents on Atari."""


def main() -> None:
    """Run the program; end with the exit code its errors carry, and never with a traceback for a user's."""
    try:
        raise_on_interrupt()
        prepare_streams()
        status = _run(sys.argv[1:])
        sys.stdout.flush()
    except KeyboardInterrupt:
        say("interrupted; what had been saved before is whole")
        status = _INTERRUPTED
    except (UserError, HaltedError, DamagedError) as error:
        say(f"error: {error}")
        status = error.exit_code
    except InterruptedRunError as interruption:
        say("\n".join([str(interruption), *interruption.__notes__]))
        status = interruption.exit_code
    except OSError as error:
        status = _status_of(error)
    sys.exit(status)


def _run(arguments: list[str]) -> int:
    """Run the command that the arguments name and return its exit code."""
    if _COMPLETION in os.environ:
        app(prog_name=NAME)  # a shell asks how a line may go on
    program = typer.main.get_command(app)
    try:
        with program.make_context(NAME, arguments) as context:
            program.invoke(context)
    except typer.Exit as ended:
        return ended.exit_code
    return 0


def _status_of(error: OSError) -> int:
    """Say which file an error of the system is about and return the exit code; raise what is our fault."""
    if is_of_output(error):
        leave_output()
        if isinstance(error, BrokenPipeError):
            return 0  # a reader that has seen enough is no fault
    elif error.filename is None and error.errno not in _SHORT_OF:
        raise error
    cause = (error.strerror or str(error)).lower()
    say(f"error: {error.filename or NAME}: {cause}")
    return UserError.exit_code
