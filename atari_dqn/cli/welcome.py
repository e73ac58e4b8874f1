"""Print, for `dqn` without arguments, the three commands to begin with."""

from __future__ import annotations

from typing import Any

import typer

from atari_dqn import __version__
from atari_dqn.cli.command import Group

COMMANDS = {
    "dqn train catch_smoke": "train an agent on a toy game, in seconds",
    "dqn eval outputs/catch_smoke_seed1": "play games with it and store the scores",
    "dqn compare outputs": "compare all runs in a folder",
}
"""The first commands and what they do; each uses what the previous one left."""
_OTHERS = {
    "On Atari": "dqn train pong_quick",
    "This machine": "dqn doctor",
    "All commands": "dqn --help",
    "Completion": "dqn --install-completion   for the Tab key, in this shell",
}


class Program(Group):
    """The group of all commands."""

    def run_without_command(self, ctx: Any) -> None:
        """Print the greeting and end the program successfully."""
        typer.echo(greeting())
        ctx.exit()


def greeting() -> str:
    """Return the greeting, whose lines fit into 80 columns."""
    lines = [f"atari_dqn {__version__}: train, resume, evaluate and compare DQN-family agents on Atari.", ""]
    lines += [f"  {command:36}{what}" for command, what in COMMANDS.items()]
    lines += ["", *(f"{what + ':':14}{command}" for what, command in _OTHERS.items())]
    return "\n".join(lines)
