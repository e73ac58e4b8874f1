"""The videos that sinks upload."""

from pathlib import Path

from atari_dqn.telemetry.sinks.video_frames import NewVideos


def found(videos: NewVideos) -> list[tuple[int, str]]:
    return [(frames, video.name) for frames, video in videos.fresh()]


def video(run: Path) -> Path:
    (run / "videos").mkdir(exist_ok=True)
    return run / "videos" / "step_000000100.mp4"


def test_a_video_is_new_once(tmp_path: Path) -> None:
    videos = NewVideos(tmp_path, frame_skip=4)
    video(tmp_path).write_bytes(b"frames")
    assert found(videos) == [(400, "step_000000100.mp4")]
    assert found(videos) == []


def test_videos_of_an_earlier_process_are_not_new(tmp_path: Path) -> None:
    video(tmp_path).write_bytes(b"frames")
    assert found(NewVideos(tmp_path, frame_skip=4)) == []


def test_another_video_of_the_same_name_is_new(tmp_path: Path) -> None:
    video(tmp_path).write_bytes(b"before the run went back to a checkpoint")
    videos = NewVideos(tmp_path, frame_skip=4)
    (tmp_path / "partial").write_bytes(b"other weights")
    (tmp_path / "partial").replace(video(tmp_path))
    assert found(videos) == [(400, "step_000000100.mp4")]


def test_a_video_that_is_removed_while_it_is_looked_for_is_not_new(tmp_path: Path) -> None:
    videos = NewVideos(tmp_path, frame_skip=4)
    video(tmp_path).symlink_to(tmp_path / "removed")
    assert found(videos) == []
