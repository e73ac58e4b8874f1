"""Wrong options, arguments and commands: one line in one style, whichever library detects them."""

import re
import sys
from pathlib import Path

import pytest
from broken_runs import make_run

from atari_dqn.cli.app import main
from atari_dqn.telemetry.sinks import options

WRONG = {
    "unknown command": (
        ["trian"],
        "dqn: found 'trian', expected a command: train, resume, sweep, tune, eval, record, play, compare, "
        'export, import, verify, bench, watch, dashboard, doctor, spec; did you mean "train"?',
    ),
    "unknown command of spec": (
        ["spec", "chek"],
        "dqn spec: found 'chek', expected a command: show, check, diff; did you mean \"check\"?",
    ),
    "unknown option": (
        ["train", "x.toml", "--run"],
        'dqn train: found --run, expected an option that `dqn train --help` lists; did you mean "--run-dir"?',
    ),
    "unknown short option": (["-x"], "dqn: found -x, expected an option that `dqn --help` lists"),
    "no argument": (["train"], "dqn train: SPEC is missing; expected dqn train [OPTIONS] SPEC"),
    "no arguments": (["watch"], "dqn watch: RUN_DIR... is missing; expected dqn watch [OPTIONS] RUN_DIR..."),
    "one argument too many": (
        ["doctor", "twice"],
        "dqn doctor: found 'twice', one argument too many; expected dqn doctor [OPTIONS]",
    ),
    "option without its value": (
        ["bench", "x.toml", "--seconds"],
        "dqn bench: --seconds has no value; expected --seconds SECONDS",
    ),
    "flag with a value": (
        ["train", "x.toml", "--plain=3"],
        "dqn train: --plain has a value; expected --plain alone",
    ),
    "no integer": (
        ["eval", "x", "--episodes", "1.5"],
        "--episodes: found '1.5', expected an integer from 1 to 1000000",
    ),
    "none": (["eval", "x", "--envs", "0"], "--envs: found '0', expected an integer at least 1"),
    "frames": (["resume", "x", "--frames", "lots"], "--frames: found 'lots', expected an integer at least 1"),
    "no threads": (["resume", "x", "--threads", "0"], "--threads: found '0', expected an integer at least 1"),
    "no frames": (["verify", "x", "--frames", "-1"], "--frames: found '-1', expected an integer at least 1"),
    "too large": (["record", "x", "--scale", "13"], "--scale: found '13', expected an integer from 1 to 12"),
    "port": (["dashboard", "--port", "70000"], "--port: found '70000', expected an integer from 1 to 65535"),
    "no number": (
        ["bench", "x.toml", "--seconds", "nan"],
        "--seconds: found 'nan', expected a number at least 1",
    ),
    "too often": (
        ["watch", "x", "--every", "0"],
        "--every: found '0', expected a number from 0.1 to 86400",
    ),
    "never": (
        ["watch", "x", "--every", "1e10"],
        "--every: found '1e10', expected a number from 0.1 to 86400",
    ),
    "still": (
        ["play", "--game", "pong", "--speed", "0"],
        "--speed: found '0', expected a number from 0.01 to 100",
    ),
    "no score": (["compare", "x", "--to-score", "inf"], "--to-score: found 'inf', expected a finite number"),
    "unknown word": (
        ["eval", "x", "--protocol", "moder"],
        "--protocol: found 'moder', expected run, classic, modern or both; did you mean \"modern\"?",
    ),
    "unknown device": (
        ["verify", "x", "--device", "gpu"],
        "--device: found 'gpu', expected auto, cpu, cuda or cuda:N",
    ),
    "folder": (["spec", "check", "/"], "/: is a directory; expected a TOML spec"),
}


def test_sink_of_a_run_that_cannot_be_opened_any_more_says_how_to_resume_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(options, "find_spec", lambda name: None)
    run = make_run(tmp_path / "run", [1.0])
    (run / "sinks.json").write_text('{"sinks": ["wandb"]}')
    code, said = ended(["resume", str(run)], capsys)
    assert code == 2
    assert "the run reported to wandb before; `--sink none` resumes it without" in said


def ended(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[object, str]:
    """Return a command's exit code and its message."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["dqn", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
    return ended.value.code, capsys.readouterr().err


@pytest.mark.parametrize(("arguments", "message"), WRONG.values(), ids=WRONG.keys())
def test_wrong_input_is_one_line_in_the_program_s_words(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, said = ended(arguments, capsys)
    assert (code, said) == (2, f"error: {message}\n")


@pytest.mark.parametrize("arguments", [["eval", "x", "--episodes", "2k"], ["resume", "x", "--frames", "1e6"]])
def test_integers_of_options_are_read_as_those_of_set(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended(arguments, capsys)[1].startswith("error: run directory 'x': not found")


@pytest.mark.parametrize("arguments", [["spec"], ["spec", "--"]])
def test_no_command_of_a_group_shows_the_help_and_is_an_error(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    code, said = ended(arguments, capsys)
    assert code == 2
    assert re.search("^Commands:$", said, re.MULTILINE)
