"""Every `dqn` command in a code block of a page is one that this program takes; test_tutorial.py runs some.

A synopsis, such as `dqn train SPEC [--plan]`, names options that there are.
"""

import re
import runpy
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from atari_dqn.cli.app import app

ROOT = Path(__file__).parents[1]
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    ROOT / "benchmarks" / "README.md",
    ROOT / "runs" / "README.md",
]
MADE = {"docs/commands.md"}
"""Pages made from the program itself."""
BLOCK = re.compile(r"^```(?:text)?\n(.*?)^```", re.DOTALL | re.MULTILINE)
SYNOPSIS = re.compile(r"[\[|…]|\.\.\.")
"""What a line has that describes commands rather than being one."""
PROGRAM = typer.main.get_command(app)


def lines() -> Iterator[tuple[str, str]]:
    """Yield the name of a page and a line of a block that begins with `dqn`, without its remark."""
    for page in PAGES:
        name = str(page.relative_to(ROOT))
        for block in [] if name in MADE else BLOCK.findall(page.read_text()):
            for line in re.sub(r"\n {10,}(?=\[)", " ", block).splitlines():  # a synopsis that goes on
                if line.startswith("dqn "):
                    yield name, re.split(r" {3,}| +# ", line)[0].strip()


LINES = list(lines())
COMMANDS = [(page, line) for page, line in LINES if not SYNOPSIS.search(line)]
SYNOPSES = [(page, line) for page, line in LINES if SYNOPSIS.search(line)]


def named(words: list[str]) -> tuple[Any, list[str]]:
    """Find the command that the first words name; return it with the other words."""
    command = PROGRAM
    while hasattr(command, "commands") and words and not words[0].startswith("-"):
        command, words = command.commands[words[0].split("|")[0]], words[1:]
    return command, words


@pytest.mark.parametrize(("page", "line"), COMMANDS)
def test_command_on_a_page_is_one_that_this_program_takes(page: str, line: str) -> None:
    command, words = named(shlex.split(line)[1:])
    if words != ["--install-completion"]:  # it acts while it is read
        assert command.make_context("dqn", words, resilient_parsing=False).args == []


@pytest.mark.parametrize(("page", "line"), SYNOPSES)
def test_synopsis_on_a_page_names_options_that_there_are(page: str, line: str) -> None:
    command, _ = named(line.split()[1:])
    options = {name for param in command.params for name in (*param.opts, *param.secondary_opts)}
    assert set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", line)) - options == set()


def test_many_pages_have_commands() -> None:
    assert {"README.md", "docs/claims.md", "docs/resuming.md", "docs/sweeps.md"} <= {
        page for page, _ in LINES
    }


def test_the_command_reference_is_current() -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "make_command_reference.py"))
    remedy = "docs/commands.md is old: run `python scripts/make_command_reference.py`"
    assert (ROOT / "docs" / "commands.md").read_text() == script["page"](), remedy
