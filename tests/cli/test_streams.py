"""Outputs without a reader, and errors of the system, each named by its own file."""

import errno
import os
import shlex
import subprocess
from pathlib import Path

import pytest
from program import ENVIRONMENT, PROGRAM, dqn

from atari_dqn.cli import app
from atari_dqn.cli.app import main

CATCH = Path(__file__).parents[1] / "tiny_catch.toml"


def read_two_lines(*arguments: str) -> tuple[int, str]:
    """Run a command whose reader leaves after two lines; return the exit code and the error output."""
    with subprocess.Popen(
        [*PROGRAM, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | ENVIRONMENT,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline()
        assert process.stdout.readline()
        process.stdout.close()
        said = process.stderr.read()
    return process.returncode, said


@pytest.mark.slow
def test_run_whose_reader_leaves_is_saved_and_says_how_it_goes_on(tmp_path: Path) -> None:
    endless = ["--set", "training.total_frames=9M", "--run-dir", str(tmp_path / "my run")]
    code, said = read_two_lines("train", str(CATCH), *endless)
    assert code == 129
    assert f"`dqn resume '{tmp_path}/my run'` continues" in said
    assert "Traceback" not in said
    assert (tmp_path / "my run" / "checkpoints" / "latest").exists()


def test_reader_that_has_seen_enough_is_no_error() -> None:
    with subprocess.Popen(
        [*PROGRAM, "spec", "show", str(CATCH)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        said = process.stderr.read()
    assert (process.returncode, said) == (0, "")


def test_output_that_is_full_is_named() -> None:
    with open("/dev/full", "w") as full:  # noqa: PTH123
        done = subprocess.run(
            [*PROGRAM, "spec", "show", str(CATCH)], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert (done.returncode, done.stderr) == (2, "error: the output: no space left on device\n")


def ended(error: BaseException, capsys: pytest.CaptureFixture[str]) -> tuple[object, str]:
    """Return the exit code of a command that ends with an error, and its message."""

    def fail(_: list[str]) -> int:
        raise error

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(app, "_run", fail)
        with pytest.raises(SystemExit) as ended:
            main()
    return ended.value.code, capsys.readouterr().err


@pytest.mark.parametrize(
    ("number", "exit_code"), [(errno.EIO, 5), (errno.EACCES, 2), (errno.ENOSPC, 2), (errno.EMFILE, 5)]
)
def test_error_of_the_system_is_one_line_that_names_its_file(
    number: int, exit_code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    reason = os.strerror(number)
    code, said = ended(OSError(number, reason, "run/checkpoints/latest"), capsys)
    assert (code, said) == (exit_code, f"error: run/checkpoints/latest: {reason.lower()}\n")


def test_too_many_open_files_need_no_file_to_be_a_user_s_error(capsys: pytest.CaptureFixture[str]) -> None:
    code, said = ended(OSError(errno.EMFILE, os.strerror(errno.EMFILE)), capsys)
    assert (code, said) == (5, "error: dqn: too many open files\n")


@pytest.mark.parametrize("number", [errno.EBADF, errno.EIO])
def test_error_without_a_file_is_our_own_and_keeps_its_traceback(
    number: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(OSError, match=os.strerror(number)):
        ended(OSError(number, os.strerror(number)), capsys)


def test_module_is_the_program() -> None:
    done = dqn("--version")
    assert (done.returncode, done.stdout) == (0, "atari_dqn 0.2.0\n")


@pytest.mark.slow
def test_closed_standard_output_is_no_error() -> None:
    command = " ".join([*map(shlex.quote, PROGRAM), "--version", ">&-"])
    done = subprocess.run(command, shell=True, capture_output=True, text=True, env=os.environ | ENVIRONMENT)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
def test_error_with_a_closed_standard_error_is_not_printed_on_the_standard_output() -> None:
    command = " ".join([*map(shlex.quote, PROGRAM), "spec", "check", "absent", "2>&-"])
    done = subprocess.run(command, shell=True, capture_output=True, text=True, env=os.environ | ENVIRONMENT)
    assert (done.returncode, done.stdout) == (2, "")


@pytest.mark.slow
def test_folder_that_has_been_removed_is_said(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    command = ["sh", "-c", 'rmdir "$1"; shift; exec "$@"', "sh", str(folder), *PROGRAM, "doctor"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=os.environ | ENVIRONMENT)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: the current folder does not exist any more; change to another one\n"
