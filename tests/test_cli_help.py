import re
import shlex
import subprocess
import sys

import pytest
import typer

from atari_dqn.cli.app import COMMANDS, app
from atari_dqn.cli.command import Group

HEAVY = ("torch", "numpy", "ale_py", "gymnasium", "cv2", "polars", "rich")
EVERY_HELP = [
    [],
    *([name] for name in COMMANDS),
    ["spec"],
    ["spec", "show"],
    ["spec", "check"],
    ["spec", "diff"],
]


def examples_of(command: Group, path: str = "") -> dict[str, str]:
    """Collect the examples of a group and of its commands, by their names."""
    found = {path: command.epilog or ""}
    for name, inner in command.commands.items():
        inner_path = f"{path} {name}".lstrip()
        found |= (
            examples_of(inner, inner_path) if isinstance(inner, Group) else {inner_path: inner.epilog or ""}
        )
    return found


PROGRAM = typer.main.get_command(app)
EXAMPLES = examples_of(PROGRAM)


def run_in_fresh_process(arguments: list[str]) -> tuple[str, set[str]]:
    """Run `dqn`; return its output and the heavy packages that it imported."""
    code = (
        "import sys, atexit\n"
        f"atexit.register(lambda: print(*sorted(set(sys.modules) & set({HEAVY!r})), file=sys.stderr))\n"
        "from atari_dqn.cli import main\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout, set(done.stderr.split())


def help_of(arguments: list[str], columns: int) -> str:
    """Format a command's help for a terminal of `columns`."""
    command, path = PROGRAM, "dqn"
    parent = None
    for name in arguments:
        parent = command.context_class(command, info_name=path, parent=parent, **command.context_settings)
        command, path = command.commands[name], name
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(columns))
        settings = command.context_settings if parent is None else {}
        return command.get_help(command.context_class(command, info_name=path, parent=parent, **settings))


@pytest.mark.parametrize("arguments", [["--help"], ["train", "-h"], ["spec", "--help"], ["--version"]])
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    _, imported = run_in_fresh_process(arguments)
    assert imported == set()


def test_every_command_is_a_module_of_its_name() -> None:
    modules = {name: command.__module__ for name, (command, _) in COMMANDS.items()}
    names = {"import": "import_archive"}  # a word of Python
    assert modules == {name: f"atari_dqn.cli.{names.get(name, name)}" for name in COMMANDS}


def test_help_names_every_command() -> None:
    text = help_of([], 80)
    assert [command for command in (*COMMANDS, "spec") if f"  {command} " not in text] == []


@pytest.mark.parametrize("arguments", EVERY_HELP, ids=" ".join)
@pytest.mark.parametrize("columns", [80, 120])
def test_help_fits_the_terminal(arguments: list[str], columns: int) -> None:
    assert [line for line in help_of(arguments, columns).splitlines() if len(line) > columns] == []


@pytest.mark.parametrize("arguments", EVERY_HELP, ids=" ".join)
def test_help_is_as_wide_as_the_terminal(arguments: list[str]) -> None:
    assert len(help_of(arguments, 200).splitlines()) <= len(help_of(arguments, 80).splitlines())


@pytest.mark.parametrize("arguments", EVERY_HELP, ids=" ".join)
def test_help_is_not_cut(arguments: list[str]) -> None:
    assert not re.search(r"[a-z]\.\.\.$|…$", help_of(arguments, 80), re.MULTILINE)


@pytest.mark.parametrize("arguments", EVERY_HELP, ids=" ".join)
def test_help_names_values_as_people_do_and_not_by_python_s_types(arguments: list[str]) -> None:
    assert not re.search(r"<(str|int|float|path|bool)|None|[{}\[]{2}|x>=", help_of(arguments, 80))


@pytest.mark.parametrize("arguments", EVERY_HELP, ids=" ".join)
def test_every_help_gives_examples(arguments: list[str]) -> None:
    assert f"\nExamples:\n  {EXAMPLES[' '.join(arguments)].splitlines()[0]}" in help_of(arguments, 80)


@pytest.mark.parametrize("line", [line for lines in EXAMPLES.values() for line in lines.splitlines()])
def test_examples_are_commands_that_exist_with_their_options(line: str) -> None:
    program, *arguments = shlex.split(line)
    command = PROGRAM
    assert program == "dqn"
    while isinstance(command, Group):
        command = command.commands[arguments.pop(0)]
    if arguments != ["--help"]:
        command.make_context(command.name, arguments)


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        (["dqn", "tr"], ["train"]),
        (["dqn", "spec", ""], ["show", "check", "diff"]),
        (["dqn", "eval", "run", "--protocol", "m"], ["modern"]),
        (["dqn", "train", "x.toml", "--set", "learner.batch"], ["learner.batch_size="]),
        (["dqn", "train", "catch_sm"], ["catch_smoke"]),
    ],
)
def test_shells_complete_commands_options_and_keys(
    words: list[str], completed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (
        ("_DQN_COMPLETE", "complete_bash"),
        ("COMP_WORDS", " ".join(words)),
        ("COMP_CWORD", str(len(words) - 1)),
    ):
        monkeypatch.setenv(name, value)
    output, imported = run_in_fresh_process([])
    assert output.split() == completed
    assert imported & {"torch", "numpy"} == set()


def test_completion_is_installed_for_the_shell_that_is_there(
    tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    command = [sys.executable, "-m", "atari_dqn", "--install-completion"]
    # with a second command, or the shell would be replaced by the program
    done = subprocess.run(
        ["bash", "-c", f"{shlex.join(command)}; echo $?"], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "0"
    assert "_DQN_COMPLETE=complete_bash" in (tmp_path / ".bash_completions" / "dqn.sh").read_text()
