"""A spec that leaves settings to the machine, in every command that takes a spec or the run made of it."""

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from atari_dqn.cli.app import main
from atari_dqn.machine.cgroup import ControlGroups
from atari_dqn.machine.hardware import usable_cores
from atari_dqn.spec.keys import flatten
from atari_dqn.spec.loader import load_resolved

SPEC = Path(__file__).parents[1] / "tiny_catch.toml"
KEYS = ("learner.precision", "learner.threads", "learner.compile", "system.workers")
AUTO = [word for key in KEYS for word in ("--set", f"{key}=auto")]
SAID = (
    r'chosen for this machine: learner\.precision = "(fp32|bf16)" \(.+\), learner\.threads = \d+ \(.+\), '
    r"learner\.compile = (true|false) \(.+\), system\.workers = \d+ \(.+\)"
)


def dqn(*arguments: str) -> int:
    """Run the program in this process and return its exit code."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["dqn", *arguments])
        try:
            main()
        except SystemExit as ended:
            return int(str(ended.code))
    return 0


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("auto") / "run"
    assert dqn("train", str(SPEC), *AUTO, "--plain", "--run-dir", str(path)) == 0
    return path


def test_train_writes_the_value_chosen(made: Path) -> None:
    values = flatten(load_resolved(made / "spec.toml").spec)
    assert "auto" not in {values[key] for key in KEYS}


def test_train_says_in_one_line_what_was_chosen(made: Path) -> None:
    events = [json.loads(line) for line in (made / "events.jsonl").read_text().splitlines()]
    (said,) = [event["message"] for event in events if event["kind"] == "auto"]
    assert re.fullmatch(SAID, said)


def test_more_threads_than_cores_are_refused_before_anything_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, cores = tmp_path / "run", usable_cores(ControlGroups())
    assert dqn("train", str(SPEC), "--set", f"learner.threads={cores + 1}", "--run-dir", str(path)) == 2
    assert f"learner.threads: found {cores + 1}, expected at most {cores}," in capsys.readouterr().err
    assert not path.exists()


def test_value_of_another_type_is_refused_with_auto_among_what_is_expected(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert dqn("spec", "check", str(SPEC), "--set", "learner.threads=many") == 2
    assert 'expected an integer at least 1, or "auto"' in capsys.readouterr().err


@pytest.mark.parametrize(
    "command",
    [
        ["spec", "show"],
        pytest.param(["bench", "--seconds", "1"], marks=pytest.mark.slow),
        pytest.param(["train", "--plan"], marks=pytest.mark.slow),
    ],
    ids=" ".join,
)
def test_command_says_what_was_chosen(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert dqn(*command, str(SPEC), *AUTO) == 0
    out = capsys.readouterr().out
    said = out[out.index("chosen for this machine") :]
    assert re.search(SAID, " ".join(said.replace("# ", "").split()))


def test_shown_spec_has_the_value_chosen(capsys: pytest.CaptureFixture[str]) -> None:
    assert dqn("spec", "show", str(SPEC), *AUTO) == 0
    assert re.search(r'^precision = "(fp32|bf16)"$', capsys.readouterr().out, re.MULTILINE)


@pytest.mark.parametrize(
    "options",
    [
        lambda run: ["eval", run, "--episodes", "1"],
        lambda run: ["resume", run, "--frames", "1400", "--plain"],
        lambda run: ["record", run, "-o", f"{run}.mp4"],
        lambda run: ["spec", "show", run],
        pytest.param(lambda run: ["verify", run, "--frames", "40"], marks=pytest.mark.slow),
    ],
    ids=["eval", "resume", "record", "spec show", "verify"],
)
def test_command_takes_the_run_of_such_a_spec(options: Callable[[str], list[str]], made: Path) -> None:
    assert dqn(*options(str(made))) == 0
