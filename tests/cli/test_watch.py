"""`dqn watch` as a program, in a pipe and on a terminal, and with a clock that is set by hand."""

import fcntl
import os
import pty
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path

import pyte
import pytest
from forked import CommandServer, Finished

from atari_dqn.cli.watch import watch

COMMAND = [sys.executable, "-c", "from atari_dqn.cli import main; main()", "watch"]
Watched = Callable[..., Finished]


@pytest.fixture(scope="module")
def finished(tiny_run: Callable[..., Path]) -> Path:
    return tiny_run()


@pytest.fixture
def watched(command_server: CommandServer) -> Watched:
    return lambda *words: command_server.run("watch", *words)


@pytest.mark.slow
def test_a_finished_run_in_a_pipe_is_shown_to_its_end_and_no_further(
    watched: Watched, finished: Path
) -> None:
    done = watched(finished)
    assert done.code == 0
    assert "finished: finished at 1,200 frames" in done.out.splitlines()[-1]


def test_several_runs_are_a_table_and_an_unreadable_one_is_named(
    watched: Watched, finished: Path, tmp_path: Path
) -> None:
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "spec.toml").write_text("no")
    done = watched(finished, tmp_path / "broken")
    assert done.code == 0
    line = next(line for line in done.out.splitlines() if "my run [é]" in line)
    assert line.split()[3:6:2] == ["finished", "100%"]
    assert "broken" in done.out
    assert "unreadable" in done.out


def test_once_says_how_a_finished_run_stands_and_repeats_no_old_lines(
    watched: Watched, finished: Path
) -> None:
    lines = watched(finished, "--once").out.splitlines()
    printed = dict(line.split("  ", 1) for line in lines if line and not line.startswith(" "))
    assert printed["state"].strip().startswith("finished, written ")
    assert printed["frames"].strip() == "1,200 of 1,200 (100.0%)"
    assert "evaluation at" not in "\n".join(lines)
    assert len(lines) < 15


def test_once_says_that_a_killed_run_is_stopped(watched: Watched, finished: Path, tmp_path: Path) -> None:
    path = Path(shutil.copytree(finished, tmp_path / "run", symlinks=True))
    without_end = [
        line for line in (path / "events.jsonl").read_text().splitlines() if "finished" not in line
    ]
    (path / "events.jsonl").write_text("\n".join(without_end) + "\n")
    assert "stopped, written " in watched(path, "--once").out


def test_a_folder_is_the_runs_in_it(watched: Watched, finished: Path) -> None:
    done = watched(finished.parent, "--once")
    assert any(line.split()[:4] == ["my", "run", "[é]", "finished"] for line in done.out.splitlines())


def test_a_run_in_a_pipe_is_shown_with_the_age_of_its_files(watched: Watched, finished: Path) -> None:
    assert "1,200 frames (finished, written " in watched(finished).out.splitlines()[0]


def test_a_damaged_table_is_named_with_what_to_do(watched: Watched, finished: Path, tmp_path: Path) -> None:
    path = Path(shutil.copytree(finished, tmp_path / "run", symlinks=True))
    (path / "eval_log.csv").unlink()
    line = watched(path).out.splitlines()[-1]
    assert line.startswith("  1.2k  damaged log: eval_log.csv: missing; restore it, or `dqn resume ")


@pytest.mark.parametrize("options", [("--once",), ()])
def test_an_error_of_a_damaged_header_says_what_to_do(
    watched: Watched, finished: Path, tmp_path: Path, options: tuple[str, ...]
) -> None:
    path = Path(shutil.copytree(finished, tmp_path / "run", symlinks=True))
    (path / "eval_log.csv").write_text("step\n")
    done = watched(path, *options)
    assert done.code == 4
    assert "--set-aside-damaged-logs` moves it to set_aside/" in done.err


def test_no_run_at_all_is_the_users_mistake(watched: Watched, tmp_path: Path) -> None:
    done = watched(tmp_path)
    assert done.code == 2
    assert "is not a run directory" in done.err
    assert watched(tmp_path, tmp_path / "b").code == 2


def test_a_path_that_does_not_exist_is_the_users_mistake_next_to_a_good_one(
    watched: Watched, finished: Path, tmp_path: Path
) -> None:
    done = watched(finished, tmp_path / "missing")
    assert (done.code, "missing: not found" in done.err) == (2, True)


def test_a_folder_is_the_runs_of_the_sweeps_in_it_too(
    watched: Watched, finished: Path, tmp_path: Path
) -> None:
    shutil.copytree(finished, tmp_path / "sweep" / "run", symlinks=True)
    assert any(
        line.split()[:2] == ["run", "finished"] for line in watched(tmp_path, "--once").out.splitlines()
    )


@pytest.fixture
def with_tune(finished: Path, tmp_path: Path) -> Path:
    """A folder with a run, and with a tune of one run."""
    shutil.copytree(finished, tmp_path / "run", symlinks=True)
    shutil.copytree(finished, tmp_path / "tune" / "runs" / "trial", symlinks=True)
    (tmp_path / "tune" / "tune.json").touch()
    return tmp_path


def test_a_tune_in_a_folder_is_named_as_left_out(watched: Watched, with_tune: Path) -> None:
    done = watched(with_tune, "--once")
    assert "trial" not in done.out
    assert done.err.startswith(f"left out: {with_tune / 'tune'} is the folder of a tune")


def test_a_tune_is_refused_with_the_folder_of_its_runs(watched: Watched, with_tune: Path) -> None:
    done = watched(with_tune / "tune")
    assert (done.code, f"name that of its runs: {with_tune / 'tune' / 'runs'}" in done.err) == (2, True)


def test_archives_are_refused_with_the_commands_that_take_them(watched: Watched, tmp_path: Path) -> None:
    for name in ("a.dqn", "b.dqn"):
        (tmp_path / name).touch()
    done = watched(tmp_path / "a.dqn", tmp_path / "b.dqn")
    assert done.code == 2
    assert "b.dqn: archives have no live view; `dqn compare` shows their scores" in done.err


def test_an_archive_next_to_a_run_is_named_as_left_out(
    watched: Watched, finished: Path, tmp_path: Path
) -> None:
    (tmp_path / "a.dqn").touch()
    done = watched(finished, tmp_path / "a.dqn", "--once")
    assert done.code == 0
    assert "unreadable" not in done.out
    assert done.err.startswith(f"left out: {tmp_path / 'a.dqn'}: archives have no live view")


class FakeTime:
    """A clock that a sleep sets forward, for at most an hour."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds
        assert self.seconds < 3_600, "the watching does not end"


@pytest.fixture
def fake_time(monkeypatch: pytest.MonkeyPatch) -> FakeTime:
    fake = FakeTime()
    monkeypatch.setattr("atari_dqn.cli.watch.time", fake)
    return fake


def killed(finished: Path, path: Path) -> Path:
    """Copy a run as SIGKILL leaves it, long after its process has ended."""
    shutil.copytree(finished, path, symlinks=True)
    events = path / "events.jsonl"
    lines = events.read_text().splitlines(keepends=True)
    events.write_text("".join(line for line in lines if '"finished"' not in line))
    for file in path.iterdir():
        os.utime(file, (1e9, 1e9))
    return path


def test_a_killed_run_is_shown_for_a_minute(
    finished: Path, tmp_path: Path, fake_time: FakeTime, capsys: pytest.CaptureFixture[str]
) -> None:
    watch([killed(finished, tmp_path / "run")], every="2", plain=True)
    assert fake_time.seconds == 60.0
    assert capsys.readouterr().out.splitlines()[-1].startswith("run: stopped, written ")


def test_a_table_of_killed_runs_is_shown_for_a_minute(
    finished: Path, tmp_path: Path, fake_time: FakeTime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    watch([killed(finished, tmp_path / "a"), killed(finished, tmp_path / "b")], every="2")
    assert fake_time.seconds == 60.0


def test_a_table_of_runs_is_written_to_a_file_once_though_colours_are_forced(
    finished: Path, tmp_path: Path, fake_time: FakeTime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    watch([killed(finished, tmp_path / "a"), killed(finished, tmp_path / "b")], every="2")
    assert fake_time.seconds == 0.0


def test_a_long_run_is_shown_from_its_latest_periods_with_all_evaluations(
    finished: Path,
    tmp_path: Path,
    fake_time: FakeTime,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = Path(shutil.copytree(finished, tmp_path / "run", symlinks=True))
    monkeypatch.setattr("atari_dqn.run.tailing.run_events.RECENT_BYTES", 300)
    watch([path], every="2", plain=True)
    lines = capsys.readouterr().out.splitlines()
    periods = [line.split()[0] for line in lines if " return " in line]
    assert periods[-1] == "1.2k"
    assert 1 <= len(periods) < 5
    assert sum("evaluation: " in line for line in lines) == len(rows_of(path / "eval_log.csv"))


def rows_of(table: Path) -> list[str]:
    return table.read_text().splitlines()[1:]


class Terminal:
    """A program on a pseudo-terminal, and what its screen shows."""

    def __init__(self, command: list[str], *, columns: int, lines: int) -> None:
        self.screen = pyte.Screen(columns, lines)
        self._stream = pyte.ByteStream(self.screen)
        self._master, slave = pty.openpty()
        self.resize(columns, lines)
        environment = os.environ | {"TERM": "xterm-256color"}
        self.process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=environment)
        os.close(slave)

    def resize(self, columns: int, lines: int) -> None:
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self.screen.resize(lines, columns)

    def shows(self, text: str, *, seconds: float = 30.0) -> bool:
        deadline = time.monotonic() + seconds
        os.set_blocking(self._master, False)
        while time.monotonic() < deadline:
            try:
                self._stream.feed(os.read(self._master, 65_536))
            except BlockingIOError:
                time.sleep(0.05)
            except OSError:
                break
            if any(text in line for line in self.screen.display):
                return True
        return False


def test_a_run_that_goes_on_is_shown_on_80_by_24_and_after_a_resize(finished: Path, tmp_path: Path) -> None:
    path = Path(shutil.copytree(finished, tmp_path / "run", symlinks=True))
    events = path / "events.jsonl"
    lines = events.read_text().splitlines(keepends=True)
    events.write_text("".join(line for line in lines if '"finished"' not in line))
    terminal = Terminal([*COMMAND, "--every", "0.2", str(path)], columns=80, lines=24)
    assert terminal.shows("1.2k/1.2k 100.0%")
    terminal.resize(100, 30)
    os.kill(terminal.process.pid, signal.SIGWINCH)
    assert terminal.shows("saved step 300")
    with events.open("a") as file:
        file.write(lines[-1])
    assert terminal.process.wait(30) == 0
