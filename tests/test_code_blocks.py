"""Code blocks of the pages: files are read, Python runs, and command lines name what is there.

test_documented_commands.py has the `dqn` commands, tests/api/test_examples.py the blocks of docs/api.md and
of docs/api_reference.md.
"""

import re
import shlex
import tomllib
from collections.abc import Callable
from configparser import ConfigParser
from pathlib import Path
from typing import Any

import pytest
from test_other_packages import ENTRY_POINTS

from atari_dqn.scale.sweep_file import read_sweep
from atari_dqn.scale.tuning.tune_file import load_tune
from atari_dqn.spec.loader import load_spec
from atari_dqn.telemetry.events import Row
from atari_dqn.telemetry.sinks.target import Target

ROOT = Path(__file__).parents[1]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("*/README.md")]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
BLOCKS = [
    (str(page.relative_to(ROOT)), language, text)
    for page in sorted(PAGES)
    for language, text in BLOCK.findall(page.read_text())
]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]


def block(page: str, language: str) -> str:
    (text,) = (text for name, written_in, text in BLOCKS if (name, written_in) == (page, language))
    return text


def lines(program: str) -> list[str]:
    """List the command lines of a program, without their remarks."""
    found = (line for _, language, text in BLOCKS if language in ("", "text") for line in text.splitlines())
    return [re.split(r" {3,}| +# ", line)[0] for line in found if line.startswith(f"{program} ")]


def test_every_block_in_a_language_has_a_test() -> None:
    assert {(page, language) for page, language, _ in BLOCKS if language not in ("", "text")} == {
        ("README.md", "toml"),
        ("docs/sweeps.md", "toml"),
        ("docs/tuning.md", "toml"),
        ("docs/extending.md", "toml"),
        ("docs/extending.md", "python"),
        ("docs/api.md", "python"),
        ("docs/api_reference.md", "pycon"),
    }


@pytest.mark.parametrize(("page", "read"), [("README.md", load_spec), ("docs/tuning.md", load_tune)])
def test_file_on_a_page_is_read(page: str, read: Callable[[Path], Any], tmp_path: Path) -> None:
    (tmp_path / "file.toml").write_text(block(page, "toml"))
    assert read(tmp_path / "file.toml") is not None


def test_sweep_on_the_page_has_no_faults(tmp_path: Path) -> None:
    (tmp_path / "file.toml").write_text(block("docs/sweeps.md", "toml"))
    assert read_sweep(tmp_path / "file.toml")[1] == []


def test_entry_points_on_the_page_are_those_of_the_package_that_is_tested() -> None:
    points = tomllib.loads(block("docs/extending.md", "toml"))["project"]["entry-points"]
    tested = ConfigParser()
    tested.read_string(ENTRY_POINTS)
    assert points == {name: dict(tested[name]) for name in tested.sections()}


def test_sink_on_the_page_prints_an_evaluation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = Target(directory=tmp_path, name="pong_seed1", track_label="A", values={})
    names: dict[str, Any] = {}
    exec(compile(block("docs/extending.md", "python"), "docs/extending.md", "exec"), names)
    sink = names["PrintSink"](target)
    sink.handle(Row(table="eval_log", values={"env_frames": 400, "mean_return": 2.5}))
    sink.close()
    assert capsys.readouterr().out == "pong_seed1 400 2.5\n"


@pytest.mark.parametrize("line", lines("python"))
def test_script_on_a_page_has_the_options_that_it_is_given(line: str) -> None:
    _, script, *words = shlex.split(line)
    source = (ROOT / script).read_text()
    imported = re.findall(r"^(?:from|import) (\w+)", source, re.MULTILINE)
    parts = [(ROOT / script).with_name(f"{name}.py") for name in imported]
    source += "".join(path.read_text() for path in parts if path.exists())
    assert [word for word in words if word.startswith("--") and f'"{word}"' not in source] == []


@pytest.mark.parametrize("line", [line for line in lines("pip") if "[" in line])
def test_extras_that_a_page_installs_are_there(line: str) -> None:
    (named,) = re.findall(r"\[([\w,-]+)\]", line)
    assert set(named.split(",")) - EXTRAS.keys() == set()


@pytest.mark.parametrize("line", [line for line in lines("docker") if "--build-arg" in line])
def test_arguments_of_an_image_that_a_page_gives_are_there(line: str) -> None:
    (name,) = re.findall(r"--build-arg (\w+)=", line)
    assert f"\nARG {name}=" in (ROOT / "Dockerfile").read_text()


@pytest.mark.parametrize("line", lines(".ci/step"))
def test_steps_of_ci_that_a_page_names_are_there(line: str) -> None:
    steps = (ROOT / ".ci" / "step").read_text()
    assert [step for step in line.split()[1:] if f"\n        {step})" not in steps] == []
