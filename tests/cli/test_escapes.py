"""Every command escapes the control characters of files and names."""

import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from broken_runs import make_run
from forked import CommandServer

from atari_dqn.view.plain import PlainView

PLANTED = "p\x1b[31m\x9b7m\u202e"
SHOWN = r"p\x1b[31m\x9b7m\u202e"
QUOTED = "p\\u001b[31m\\u009b7m\\u202e"
"""As TOML and JSON hold it."""


@pytest.fixture
def output(command_server: CommandServer) -> Callable[..., str]:
    """Runs a command and returns all that it writes."""
    return lambda *words: command_server.run(*words).output


def check(printed: str) -> None:
    assert [line for line in printed.splitlines() if not line.isprintable()] == []
    assert SHOWN in printed.replace("\n", "")


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    """A run with the escape in its folder's name, in the name it records, and in its events."""
    run = make_run(tmp_path / PLANTED, [-20.0, 1.0], overrides=["seed=1"])
    record = json.loads((run / "provenance.json").read_text()) | {"name": PLANTED}
    (run / "provenance.json").write_text(json.dumps(record))
    (run / "events.jsonl").write_text(
        f'{{"kind": "{QUOTED}", "step": 1, "env_frames": 4, "message": "{QUOTED}"}}\n'
    )
    return run


def test_spec_check_escapes_values_and_keys(output: Callable[..., str], tmp_path: Path) -> None:
    spec = tmp_path / "a.toml"
    spec.write_text(f'track = "A"\ngame = "{QUOTED}"\nseed = 1\n"{QUOTED}" = 1\n')
    check(output("spec", "check", spec))


def test_spec_check_escapes_the_name_of_a_sound_spec(output: Callable[..., str], tmp_path: Path) -> None:
    spec = tmp_path / f"{PLANTED}.toml"
    spec.write_text('track = "A"\ngame = "pong"\nseed = 1\n')
    check(output("spec", "check", spec))


def test_spec_diff_escapes_names(output: Callable[..., str], tmp_path: Path) -> None:
    specs = [tmp_path / f"{name}.toml" for name in (PLANTED, "b")]
    for seed, spec in enumerate(specs):
        spec.write_text(f'track = "A"\ngame = "pong"\nseed = {seed}\n')
    printed = output("spec", "diff", *(os.path.relpath(spec) for spec in specs))
    assert all(line.isprintable() for line in printed.splitlines())


def test_watch_escapes_the_events_of_one_run(output: Callable[..., str], planted: Path) -> None:
    check(output("watch", planted, "--once"))


def test_watch_escapes_names_in_a_table(output: Callable[..., str], planted: Path) -> None:
    check(output("watch", planted, shutil.copytree(planted, planted.with_name("b")), "--once"))


def test_compare_escapes_names(output: Callable[..., str], planted: Path) -> None:
    other = make_run(planted.with_name("other"), [1.0], spec="pong_trackB.toml")
    check(output("compare", planted, other))


def test_an_error_that_quotes_a_file_is_escaped(output: Callable[..., str], tmp_path: Path) -> None:
    run = make_run(tmp_path / PLANTED, [1.0])
    (run / "provenance.json").write_text("{")
    check(output("eval", run))


def test_the_lines_of_a_run_are_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    PlainView(title=PLANTED, total_frames=4, stream=sys.stdout)
    check(capsys.readouterr().out)
