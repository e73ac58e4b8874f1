"""A run whose replay was removed, to save space, is played and exported; only a resume and verify need it."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tiny import CPU

import atari_dqn as dqn
from atari_dqn.errors import DamagedError
from atari_dqn.evaluation.evaluate import evaluate
from atari_dqn.evaluation.export import archive_of, newest_video
from atari_dqn.evaluation.frozen_agent import load_frozen
from atari_dqn.record.checkpoint_recording import record_checkpoint
from atari_dqn.record.recording import VideoOptions
from atari_dqn.run.directory import RunDirectory
from atari_dqn.train import launch
from atari_dqn.verify.proof import check_only

SHORT = ("training.total_frames=800", "checkpoint.keep_last=2")


@pytest.fixture
def without_replay(tiny_run: Callable[..., Path], tmp_path: Path) -> Path:
    path = Path(shutil.copytree(tiny_run(*SHORT), tmp_path / "run", symlinks=True))
    for replay in path.glob("checkpoints/step_*/replay"):
        shutil.rmtree(replay)
    return path


def test_same_games_are_played_and_the_same_archive_is_made(
    without_replay: Path, tiny_run: Callable[..., Path]
) -> None:
    agent, whole = load_frozen(without_replay, CPU), load_frozen(tiny_run(*SHORT), CPU)
    played = [evaluate(each.network, each.spec, episodes=2) for each in (agent, whole)]
    assert played[0] == played[1]
    assert archive_of(agent, newest_video(agent)).parts == archive_of(whole, newest_video(whole)).parts


def test_games_are_recorded(without_replay: Path) -> None:
    options = VideoOptions(scale=2)
    agent = load_frozen(without_replay, CPU)
    assert len(record_checkpoint(agent, options=options, on_progress=lambda *_: None).games) == 1


def test_library_loads_its_agents(without_replay: Path) -> None:
    assert dqn.load(without_replay).env_frames == 800
    assert dqn.Run(without_replay).agent("best").game == "catch"


def test_weights_alone_are_enough(without_replay: Path) -> None:
    checkpoint = without_replay / "checkpoints/step_000000200"
    (checkpoint / "state.json").unlink()
    shutil.rmtree(checkpoint / "arrays")
    assert load_frozen(without_replay, CPU).step == 200


def resume(path: Path) -> object:
    return launch.resume(RunDirectory.open(path), device=CPU, views=[], total_frames=1_200)


@pytest.mark.parametrize("use", [resume, check_only])
def test_resume_and_verify_name_the_missing_replay(
    without_replay: Path, use: Callable[[Path], object]
) -> None:
    with pytest.raises(DamagedError, match=r"step_\d+: its replay is missing: replay/\d+-\d+\.zst; only a"):
        use(without_replay)
