"""The numbers of a recorded game for a browser, compared with its playback."""

import json
from itertools import accumulate
from pathlib import Path

import pytest
from tiny import CPU, FEW_STEPS, run

from atari_dqn.evaluation.frozen_agent import load_frozen
from atari_dqn.record.checkpoint_recording import record_checkpoint
from atari_dqn.record.packing import unpack
from atari_dqn.record.playback import playback
from atari_dqn.record.recording import Recording, VideoOptions
from atari_dqn.record.web.folder import write_web_folder
from atari_dqn.record.web.game_data import game_data


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    path = tmp_path_factory.mktemp("outputs") / "run"
    run(path, *FEW_STEPS, "evaluation.epsilon=0.5")
    return record_checkpoint(load_frozen(path, CPU), options=VideoOptions(), on_progress=lambda *_: None)


def test_each_position_has_the_score_the_lives_and_the_frame_of_its_playback(recording: Recording) -> None:
    (game,) = recording.games
    data = game_data(recording, game, on_step=lambda: None)
    steps = list(playback(recording, game))
    assert unpack(data["score"]).tolist() == [step.score for step in steps]
    assert unpack(data["lives"]).tolist() == [step.lives[-1] for step in steps]
    assert unpack(data["frame"]).tolist() == list(accumulate(len(step.screens) for step in steps))
    assert len({*unpack(data["lives"]).tolist()}) > 1


def test_each_decision_has_the_action_and_whether_it_was_random(recording: Recording) -> None:
    (game,) = recording.games
    data = game_data(recording, game, on_step=lambda: None)
    assert unpack(data["action"]).tolist() == game.trace.actions.tolist()
    assert unpack(data["explored"]).astype(bool).tolist() == game.trace.explored.tolist()
    assert 0 < game.trace.explored.sum() < len(game.trace.explored)


def test_a_page_plays_60_frames_a_second(recording: Recording, tmp_path: Path) -> None:
    write_web_folder(tmp_path / "web", recording, on_progress=lambda *_: None)
    text = (tmp_path / "web" / "recording.js").read_text()
    described = json.loads(text.partition("RECORDING = ")[2].rstrip(";\n"))
    assert described["seconds_per_step"] == pytest.approx(recording.env.frame_skip / 60)
