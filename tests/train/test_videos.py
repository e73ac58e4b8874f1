"""Full evaluations leave a video each, and what is learned does not change."""

import json
from pathlib import Path

import av
import pytest
from tiny import run

from atari_dqn.record.recording import load_recording
from atari_dqn.train import videos

TWO_EVALUATIONS = (
    "training.total_frames=640", "evaluation.full_period_frames=400", "evaluation.light_period_frames=9999",
)  # fmt: skip
ON = "system.evaluation_video=true"


def notices(path: Path, kind: str) -> list[str]:
    lines = [json.loads(line) for line in (path / "events.jsonl").read_text().splitlines()]
    return [line["message"] for line in lines if line["kind"] == kind]


def test_each_full_evaluation_leaves_a_video_of_its_median_game(tmp_path: Path) -> None:
    run(tmp_path / "run", *TWO_EVALUATIONS, ON)
    steps = [int(name.stem.removeprefix("step_")) for name in sorted((tmp_path / "run/videos").glob("*.mp4"))]
    assert steps == [100, 160]
    for step in steps:
        recording = load_recording(tmp_path / f"run/videos/step_{step:09d}.json")
        assert recording.choice == "the median of 3 games"
        with av.open(str(tmp_path / f"run/videos/step_{step:09d}.mp4")) as container:
            assert container.streams.video[0].frames > recording.games[0].result.length_frames
    assert len(notices(tmp_path / "run", "video")) == 2


def test_videos_change_nothing_that_is_learned_or_logged(tmp_path: Path) -> None:
    summaries = [run(tmp_path / str(value), *TWO_EVALUATIONS, f"system.evaluation_video={value}")
                 for value in ("true", "false")]  # fmt: skip
    assert summaries[0]["state_digest"] == summaries[1]["state_digest"]
    logs = [(tmp_path / value / "eval_log.csv").read_bytes() for value in ("true", "false")]
    assert logs[0] == logs[1]
    assert not (tmp_path / "false" / "videos").exists()


def test_without_the_extra_recordings_are_kept_and_the_remedy_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(videos, "_NEEDED", ("a_package_of_no_one",))
    run(tmp_path / "run", *TWO_EVALUATIONS, ON)
    assert [path.suffix for path in (tmp_path / "run/videos").iterdir()] == [".json"] * 2
    assert "pip install 'atari-dqn[record]'" in notices(tmp_path / "run", "video")[0]
