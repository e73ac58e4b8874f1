"""The events that TensorBoard, read through its own reader, has after a resume."""

from collections.abc import Callable
from pathlib import Path

import av
import numpy as np
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from atari_dqn.telemetry.events import Event, Notice, Row
from atari_dqn.telemetry.sinks.background_sink import BackgroundSink
from atari_dqn.telemetry.sinks.target import Target
from atari_dqn.telemetry.sinks.tensorboard import TensorBoardSink


def notice(kind: str, step: int, **data: object) -> Notice:
    return Notice(kind=kind, step=step, env_frames=4 * step, message="", data=data)


def episode(step: int) -> Row:
    return Row(table="train_log", values={"step": step, "env_frames": 4 * step, "episode_return": 1.0})


def evaluation(kind: str, step: int) -> tuple[Row, Notice]:
    values = {"step": step, "env_frames": 4 * step, "eval_type": kind, "mean_return": 2.0}
    return Row(table="eval_log", values=values), notice("evaluation", step, returns=[1.0, 3.0])


def handle(target: Target, *events: Event) -> None:
    """Write the events of one process, which is killed after them. A video is there before its notice."""
    folder = target.directory / "tensorboard"
    before = set(folder.glob("events*"))
    sink = TensorBoardSink(target)
    for event in events:
        if isinstance(event, Notice) and event.kind == "video":
            video_of(target, event.step)
        sink.handle(event)
    sink._writer.close()
    # TensorBoard reads files in the order of the seconds in their names, which are equal here
    for number, written in enumerate(sorted(set(folder.glob("events*")) - before), len(before)):
        written.rename(folder / f"events.out.tfevents.{number:010}")


def video_of(target: Target, step: int) -> Path:
    """Make a video of the checkpoint at a step, of two black pictures."""
    folder = target.directory / "videos"
    folder.mkdir(exist_ok=True)
    path = folder / f"step_{step:09d}.mp4"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=60)
        stream.width, stream.height, stream.pix_fmt = 64, 64, "yuv420p"
        pictures = [av.VideoFrame.from_ndarray(np.zeros((64, 64, 3), np.uint8), format="rgb24")] * 2
        for picture in (*pictures, None):
            container.mux(stream.encode(picture))
    return path


def frames_of_videos(target: Target) -> list[int]:
    """Return the frames of the videos that TensorBoard shows."""
    board = EventAccumulator(str(target.directory / "tensorboard")).Reload()
    return [event.step for event in board.Images("video")]


def frames(target: Target, tag: str) -> list[int]:
    """Return the frames of the events with a tag; of histograms for the returns of evaluations."""
    board = EventAccumulator(str(target.directory / "tensorboard"), size_guidance={"histograms": 0}).Reload()
    events = board.Histograms(tag) if tag == "eval/returns" else board.Scalars(tag)
    return [event.step for event in events]


@pytest.mark.parametrize("tag", ["eval/full/mean_return", "eval/returns"])
def test_an_evaluation_after_the_checkpoint_of_its_frame_is_there_once(
    target: Callable[[], Target], tag: str
) -> None:
    run, played = target(), evaluation("full", 10)
    handle(run, episode(10), notice("checkpoint", 10), *played)
    handle(run, notice("resumed", 10), *played, *evaluation("full", 20))
    assert frames(run, tag) == [40, 80]
    assert frames(run, "train/episode_return") == [40]


def test_an_evaluation_that_an_inexact_resume_replaces_is_written_too(target: Callable[[], Target]) -> None:
    run, played = target(), evaluation("full", 10)
    handle(run, notice("checkpoint", 10), *played)
    handle(run, notice("resumed", 10), notice("inexact", 10), *played)
    assert frames(run, "eval/full/mean_return") == [40, 40]


def test_rows_after_the_checkpoint_are_hidden_and_written_again(target: Callable[[], Target]) -> None:
    run = target()
    handle(run, episode(10), notice("checkpoint", 10), episode(12), episode(14))
    handle(run, notice("resumed", 10), episode(12))
    handle(run, notice("resumed", 10), episode(12), episode(15))
    assert frames(run, "train/episode_return") == [40, 48, 60]


def test_videos_that_a_resume_hides_are_written_again(target: Callable[[], Target]) -> None:
    run = target()
    handle(run, notice("started", 0), notice("video", 10), notice("video", 20))
    handle(run, notice("resumed", 10), notice("checkpoint", 15))
    assert frames_of_videos(run) == [40, 80]


def test_a_video_that_cannot_be_read_is_left_out_and_reported(target: Callable[[], Target]) -> None:
    run = target()
    board = TensorBoardSink(run)
    sink = BackgroundSink("tensorboard", lambda: board)
    video_of(run, 10).write_bytes(b"the beginning of a video")
    video_of(run, 20)
    sink.handle(notice("video", 20))
    sink.handle(episode(30))
    sink.close()
    assert frames_of_videos(run) == [80]
    assert frames(run, "train/episode_return") == [120]
    (problem,) = iter(sink.next_problem, None)
    assert problem.startswith("the sink tensorboard left out videos/step_000000010.mp4: Invalid data found")
