"""Wrong input: one message, exit code 2, nothing written, no traceback."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from atari_dqn.cli.app import main

GOOD = 'track = "A"\ngame = "pong"\nseed = 1\n'


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def dqn(*arguments: str) -> int:
    """Run the program in this process and return its exit code."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["dqn", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
    code = ended.value.code
    assert isinstance(code, int)
    return code


def spec(contents: bytes | str) -> str:
    data = contents if isinstance(contents, bytes) else contents.encode()
    Path("my.toml").write_bytes(data)
    return "my.toml"


FAULTS = {
    "unknown game": (GOOD.replace("pong", "pnog"), [], 'did you mean "pong"'),
    "multi-player game": (GOOD.replace("pong", "combat"), [], "combat"),
    "unknown key": (GOOD + "[learner]\nbatch_sise = 32\n", [], 'did you mean "learner.batch_size"'),
    "wrong type": (GOOD + '[learner]\nbatch_size = "32"\n', [], "learner.batch_size"),
    "out of range": (GOOD + "[env]\nframe_skip = 0\n", [], "at least 1"),
    "empty file": ("", [], "empty"),
    "binary file": (b"\x89PNG\r\n\xff\xfe", [], "UTF-8"),
    "NUL byte": (GOOD.encode() + b"\0", [], "NUL"),
    "bad TOML": ("track = \n", [], "line 1 is not TOML"),
    "--set without =": (GOOD, ["--set", "seed"], "="),
    "no such device": (GOOD, ["--device", "cuda:99"], "cuda:99"),
    "no device at all": (GOOD, ["--device", "abacus"], "abacus"),
    "too little memory": (GOOD, ["--set", "replay.capacity_steps=900_000_000_000"], "replay.capacity_steps"),
    "path below a file": (
        GOOD,
        ["--run-dir", "my.toml/run", "--set", "replay.capacity_steps=60_000"],
        "my.toml/run",
    ),
    "name too long": (
        GOOD,
        ["--run-dir", "n" * 300, "--set", "replay.capacity_steps=60_000"],
        "n" * 300,
    ),
    "contradiction": (GOOD, ["--set", "replay.prefill_steps=2_000_000"], "replay.capacity_steps"),
}


@pytest.mark.parametrize(("contents", "options", "says"), FAULTS.values(), ids=FAULTS.keys())
def test_fault_is_one_message_with_exit_code_2_and_nothing_written(
    contents: bytes | str, options: list[str], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = spec(contents)
    assert dqn("train", path, *options) == 2
    assert says in capsys.readouterr().err
    assert [file.name for file in tmp_path.iterdir()] == ["my.toml"]


def test_missing_spec_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert dqn("train", "absent.toml") == 2
    assert "absent.toml" in capsys.readouterr().err


def test_existing_run_directory_is_left_alone_and_the_remedies_are_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = spec(GOOD)
    (tmp_path / "outputs" / "my_seed1").mkdir(parents=True)
    assert dqn("train", path) == 2
    message = capsys.readouterr().err
    assert "--run-dir" in message
    assert "--run-dir" in message
    assert not list((tmp_path / "outputs" / "my_seed1").iterdir())


@pytest.mark.parametrize("command", ["resume", "eval"])
def test_directory_that_is_no_run_is_refused(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dqn(command, str(tmp_path)) == 2
    assert "is not a run directory" in capsys.readouterr().err


def test_run_directory_with_a_changed_spec_is_damaged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    (run / "checkpoints").mkdir(parents=True)
    (run / "spec.toml").write_text(GOOD)
    (run / "provenance.json").write_text('{"spec": {"digest": "some", "toml_sha256": "other"}}')
    assert dqn("resume", str(run)) == 4
    assert "spec.toml" in capsys.readouterr().err


def test_directory_that_is_no_run_is_not_said_to_be_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine").mkdir()
    assert dqn("train", spec(GOOD), "--run-dir", "mine") == 2
    assert "dqn resume" not in capsys.readouterr().err


@pytest.mark.parametrize("option", ["env.screen_size_pixels=100000", "optimizer.learning_rate=1e300"])
def test_numbers_that_no_machine_holds_are_refused(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert dqn("train", spec(GOOD), "--plan", "--set", option) == 2
    assert "error:" in capsys.readouterr().err


def test_plan_of_more_actors_than_cores_is_refused_as_its_run_is(capsys: pytest.CaptureFixture[str]) -> None:
    count = 2 * (os.cpu_count() or 1)
    keys = [f"env.num_envs={count}", f"actors.processes={count}", "system.actors_per_core=1"]
    overrides = [argument for key in keys for argument in ("--set", key)]
    assert dqn("train", "apex_small", "--plan", *overrides) == 2
    assert f"error: actors.processes is {count}, and this machine has" in capsys.readouterr().err


def test_output_that_knows_only_ascii_is_no_traceback() -> None:
    runs = Path(__file__).parents[2] / "runs"
    command = [sys.executable, "-c", "from atari_dqn.cli import main; main()", "spec", "diff"]
    done = subprocess.run(
        [*command, str(runs / "pong_trackA.toml"), str(runs / "pong_trackB.toml")],
        capture_output=True,
        env=os.environ | {"PYTHONIOENCODING": "ascii"},
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"?" in done.stdout
