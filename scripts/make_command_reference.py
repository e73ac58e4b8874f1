"""Make docs/commands.md, the reference of every command, from the program's own help."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from atari_dqn.cli.app import app

PAGE = Path(__file__).parents[1] / "docs" / "commands.md"
COLUMNS = "100"
INTRODUCTION = """# Every command

Made by `python scripts/make_command_reference.py`, from the help that `dqn COMMAND --help` prints.
"""


def helps(command: Any, path: str, parent: Any = None) -> Iterator[tuple[str, str]]:
    """Yield the path and the help of a command, then those of the commands below it."""
    settings = command.context_settings if parent is None else {}
    context = command.context_class(command, info_name=path.split()[-1], parent=parent, **settings)
    yield path, command.get_help(context)
    for name, below in getattr(command, "commands", {}).items():
        yield from helps(below, f"{path} {name}", context)


def page() -> str:
    os.environ["COLUMNS"] = COLUMNS
    parts = [INTRODUCTION]
    for path, text in helps(typer.main.get_command(app), "dqn"):
        parts += [f"## {path}\n", f"```text\n{text.rstrip()}\n```\n"]
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
