"""The events that TensorBoard, read through its own reader, has after a resume."""

from collections.abc import Callable

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from atari_dqn.telemetry.events import Event, Notice, Row
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
    """Write the events of one process, which is killed after them."""
    folder = target.directory / "tensorboard"
    before = set(folder.glob("events*"))
    sink = TensorBoardSink(target)
    for event in events:
        sink.handle(event)
    sink._writer.close()
    # TensorBoard reads files in the order of the seconds in their names, which are equal here
    for number, written in enumerate(sorted(set(folder.glob("events*")) - before), len(before)):
        written.rename(folder / f"events.out.tfevents.{number:010}")


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
