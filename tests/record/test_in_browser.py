import runpy
from pathlib import Path

import pytest
from tiny import CPU, run

from atari_dqn.evaluation.frozen_agent import load_frozen
from atari_dqn.record.checkpoint_recording import record_checkpoint
from atari_dqn.record.recording import VideoOptions
from atari_dqn.record.video_rendering import render

SCRIPT = Path(__file__).parents[2] / "scripts" / "video_in_browser.py"


@pytest.mark.slow
def test_browser_plays_a_video(tmp_path: Path) -> None:
    pytest.importorskip("playwright.sync_api", reason="the extra dev is not there")
    browser = runpy.run_path(str(SCRIPT))
    if browser["CHROMIUM"] is None:
        pytest.skip("no Chromium here")
    run(
        tmp_path / "run",
        "training.total_frames=260",
        "replay.prefill_steps=60",
        "evaluation.full_period_frames=9999",
    )
    recording = record_checkpoint(
        load_frozen(tmp_path / "run", CPU), options=VideoOptions(scale=2), on_progress=lambda *_: None
    )
    render(recording, tmp_path / "a.mp4")
    played = browser["play"](tmp_path / "a.mp4")
    assert played.error is None
    assert (played.width, played.height) != (0, 0)
    assert played.seconds > 0.4
