"""A finished Rainbow run of the version before the rooms, in `rainbow_run.tar.xz`: every command takes it.

Its parameters and state were written by other modules and classes (one folder `agents` held the kernels), and
its spec has former names of keys. It trained for 800 frames: double, dueling, prioritized,
noisy, C51, 3-step returns.
"""

import json
import tarfile
from pathlib import Path

import pytest
from forked import CommandServer

from atari_dqn.cli.app import app
from atari_dqn.dashboard.library import Library
from atari_dqn.run.directory import RunDirectory
from atari_dqn.train import evaluation_videos
from atari_dqn.verify.checks import check_run

pytestmark = pytest.mark.slow  # test_earlier_run has another earlier run

ARCHIVE = Path(__file__).with_name("rainbow_run.tar.xz")


@pytest.fixture
def old(tmp_path: Path) -> Path:
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path / "old"


def output_of(command_server: CommandServer, *words: object) -> str:
    done = command_server.run(*words)
    assert done.code == 0, done.err
    return done.out


def test_its_budget_can_be_raised(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluation_videos, "_NEEDED", ("a_package_of_no_one",))  # it takes a process
    app(["resume", str(old), "--frames", "840", "--plain"], standalone_mode=False)
    assert json.loads((old / "summary.json").read_text())["env_frames"] == 840


def test_its_evaluation_is_repeated(command_server: CommandServer, old: Path) -> None:
    text = output_of(command_server, "eval", old, "--no-save")
    assert "-2.00 ± 1.00 over 3 episodes" in text


def test_its_games_are_recorded(command_server: CommandServer, old: Path) -> None:
    output_of(command_server, "record", old, "-o", old.parent / "game.mp4", "--no-overlay")
    assert (old.parent / "game.mp4").stat().st_size > 1_000


def test_it_is_compared(command_server: CommandServer, old: Path) -> None:
    output_of(command_server, "compare", old, "--json", old.parent / "compared.json")
    assert "-2.0" in (old.parent / "compared.json").read_text()


def test_its_files_are_intact(old: Path) -> None:
    assert check_run(RunDirectory.open(old)).checkpoints == ("step_000000200",)


@pytest.mark.slow
def test_its_files_are_intact_and_it_repeats(command_server: CommandServer, old: Path) -> None:
    text = output_of(command_server, "verify", old)
    assert "1 checkpoint, 26 files" in text
    assert "began with 0.1.0" in text


def test_it_is_a_run_of_the_dashboard(old: Path) -> None:
    (entry,) = Library(old.parent).runs()
    assert (entry.unreadable, entry.fault) == ("", "")


def test_it_is_watched(command_server: CommandServer, old: Path) -> None:
    assert "800 of 800 (100.0%)" in output_of(command_server, "watch", old, "--once")
