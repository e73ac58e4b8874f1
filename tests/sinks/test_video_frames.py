"""The videos that sinks upload."""

import io
import wave
from contextlib import closing
from pathlib import Path

import av
import numpy as np
import pytest
from PIL import Image

from atari_dqn.record.video import mp4_file
from atari_dqn.telemetry.sinks.background_sink import LeftOutError
from atari_dqn.telemetry.sinks.video_frames import NewVideos, UnreadableVideoError, gif


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


def test_videos_come_in_the_order_of_their_steps_wherever_they_are(tmp_path: Path) -> None:
    videos = NewVideos(tmp_path, frame_skip=4)
    checkpoint = tmp_path / "checkpoints" / "step_000000200"
    checkpoint.mkdir(parents=True)
    (checkpoint / "game.mp4").write_bytes(b"frames")
    video(tmp_path).write_bytes(b"frames")
    assert found(videos) == [(400, "step_000000100.mp4"), (800, "game.mp4")]


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


def test_a_video_that_cannot_be_sent_is_left_out_and_the_others_are_sent(tmp_path: Path) -> None:
    videos, sent = NewVideos(tmp_path, frame_skip=4), []
    for step in (100, 200, 300):
        video(tmp_path).with_name(f"step_{step:09d}.mp4").write_bytes(b"frames")

    def send(env_frames: int, path: Path) -> None:
        if env_frames != 1_200:
            raise UnreadableVideoError("No such file")
        sent.append(path.name)

    with pytest.raises(LeftOutError) as raised:
        videos.send_fresh(send)
    assert sent == ["step_000000300.mp4"]
    assert str(raised.value) == (
        "videos/step_000000100.mp4: No such file; videos/step_000000200.mp4: No such file"
    )


def made(path: Path, *, frames: int, title: str = "") -> Path:
    """Make a video of 64 × 128 pixels as runs do, each frame of another grey."""
    with mp4_file(path, width=128, height=64, metadata={"title": title}) as write:
        for frame in range(frames):
            write(np.full((64, 128, 3), 20 * frame % 256, np.uint8))
    return path


@pytest.mark.parametrize(
    ("frames", "pictures"), [(1, 1), (6, 1), (7, 2), pytest.param(606, 100, marks=pytest.mark.slow)]
)
def test_a_gif_has_every_sixth_frame_of_the_first_ten_seconds(
    tmp_path: Path, frames: int, pictures: int
) -> None:
    height, width, data = gif(made(tmp_path / "video.mp4", frames=frames))
    with Image.open(io.BytesIO(data)) as picture:
        assert (height, width, picture.n_frames) == (64, 128, pictures)


def test_a_gif_is_as_fast_as_its_video(tmp_path: Path) -> None:
    _, _, data = gif(made(tmp_path / "video.mp4", frames=13))
    with Image.open(io.BytesIO(data)) as picture:
        assert picture.info["duration"] == 100  # milliseconds of six frames


def test_a_gif_is_repeated_for_ever(tmp_path: Path) -> None:
    _, _, data = gif(made(tmp_path / "video.mp4", frames=13))
    with Image.open(io.BytesIO(data)) as picture:
        assert picture.info["loop"] == 0


def test_a_gif_has_the_odd_size_of_its_video(tmp_path: Path) -> None:
    path = tmp_path / "video.mp4"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg4", rate=60)
        stream.width, stream.height, stream.pix_fmt = 63, 35, "yuv420p"
        picture = av.VideoFrame.from_ndarray(np.zeros((35, 63, 3), np.uint8), format="rgb24")
        container.mux(stream.encode(picture))
        container.mux(stream.encode(None))
    assert gif(path)[:2] == (35, 63)


def test_a_gif_is_at_most_320_pixels_wide_and_in_proportion(tmp_path: Path) -> None:
    path = tmp_path / "video.mp4"
    with mp4_file(path, width=1_280, height=640, metadata={}) as write:
        write(np.zeros((640, 1_280, 3), np.uint8))
    assert gif(path)[:2] == (160, 320)


def test_a_file_of_sound_only_has_no_frames(tmp_path: Path) -> None:
    path = tmp_path / "video.mp4"
    with closing(wave.open(str(path), "wb")) as sound:
        sound.setparams((1, 2, 8_000, 0, "NONE", ""))
        sound.writeframes(bytes(1_600))
    with pytest.raises(UnreadableVideoError, match="it has no frames"):
        gif(path)


@pytest.mark.parametrize("data", [b"", b"the beginning of a video"])
def test_a_damaged_video_cannot_be_read(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "video.mp4").write_bytes(data)
    with pytest.raises(UnreadableVideoError, match="Invalid data found"):
        gif(tmp_path / "video.mp4")


def test_a_video_that_is_removed_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UnreadableVideoError, match="No such file"):
        gif(tmp_path / "video.mp4")


def test_a_video_whose_title_is_damaged_is_read(tmp_path: Path) -> None:
    path = made(tmp_path / "video.mp4", frames=1, title="pong after 400 frames")
    path.write_bytes(path.read_bytes().replace(b"pong after", b"p\xffng after"))
    assert gif(path)[:2] == (64, 128)


def test_a_video_in_a_folder_with_a_colon_in_its_name_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "14:30.mp4"
    with mp4_file(path, width=128, height=2, metadata={}) as write:
        write(np.zeros((2, 128, 3), np.uint8))
    monkeypatch.chdir(tmp_path)
    assert gif(Path(path.name))[:2] == (2, 128)
