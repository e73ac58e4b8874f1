"""A run with all that `dqn verify` checks."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tiny import CPU

from atari_dqn.evaluation.checkpoint_score import evaluate_checkpoint, save_score
from atari_dqn.evaluation.frozen_agent import load_frozen
from atari_dqn.record.checkpoint_recording import record_checkpoint
from atari_dqn.record.recording import VideoOptions, save_recording


@pytest.fixture(scope="module")
def whole(tiny_run: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with the checkpoints of steps 150 and 200, a score by `dqn eval` and a recording."""
    finished = tiny_run("training.total_frames=800", "checkpoint.keep_last=2")
    path = Path(shutil.copytree(finished, tmp_path_factory.mktemp("results") / "run", symlinks=True))
    agent = load_frozen(path, CPU)
    agent.run.evaluations.mkdir()
    agent.run.videos.mkdir()
    save_score(agent, evaluate_checkpoint(agent, episodes=2))
    recording = record_checkpoint(agent, options=VideoOptions(scale=2), on_progress=lambda *_: None)
    save_recording(recording, agent.run.videos / "step_000000200_run.json")
    return path
