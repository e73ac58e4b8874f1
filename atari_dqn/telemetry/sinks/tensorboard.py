"""Write scalars, histograms, videos and hyperparameters for TensorBoard, over emulator frames."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from atari_dqn.telemetry.events import Event, GateChanged, Notice, Row
from atari_dqn.telemetry.sinks.scalars import distributions, gate_scalars, row_scalars
from atari_dqn.telemetry.sinks.sent_rows import SentRows
from atari_dqn.telemetry.sinks.target import Target
from atari_dqn.telemetry.sinks.video_frames import NewVideos, gif

FOLDER = "tensorboard"
STATE = "sent.json"


class TensorBoardSink:
    """Writes event files into the folder `tensorboard/` of the run.

    After a resume TensorBoard hides the earlier events of later frames, which are written again. An
    evaluation of a checkpoint's own frame may be logged after the checkpoint, and with free-running actors
    also one of an earlier frame. It is not hidden, because TensorBoard hides by frames; an exact resume does
    not write it a second time, and after an inexact one both are there. Later videos are written again at
    the resume.
    """

    def __init__(self, target: Target) -> None:
        self._target, self._folder = target, target.directory / FOLDER
        self._folder.mkdir(exist_ok=True)
        self._sent = SentRows(self._folder / STATE)
        self._evaluation_is_new = True
        self._videos = NewVideos(target.directory, frame_skip=int(target.values["env.frame_skip"]))
        self._writer: Any = None

    def handle(self, event: Event) -> None:
        """Write an event; `LeftOutError` if a video that is new with it cannot be read."""
        if self._writer is None:
            self._writer = self._open(event)
        if isinstance(event, Row):
            self._row(event)
        elif isinstance(event, GateChanged):
            self._scalars(gate_scalars(event), event.env_frames)
        elif isinstance(event, Notice):
            self._notice(event)

    def close(self) -> None:
        """Flush and close the files."""
        if self._writer is not None:
            self._writer.close()
        self._sent.save()

    def _open(self, first: Event) -> Any:
        from torch.utils.tensorboard import SummaryWriter

        if isinstance(first, Notice) and first.kind == "resumed":
            self._sent.forget_after(first.step)
            self._videos.forget_after(first.step)
            return SummaryWriter(str(self._folder), purge_step=first.env_frames + 1)
        writer: Any = SummaryWriter(str(self._folder))
        writer.add_hparams(dict(self._target.values), {}, run_name=".")
        return writer

    def _row(self, row: Row) -> None:
        is_new = self._sent.is_new(row)
        if is_new:
            self._scalars(row_scalars(row), int(row.values["env_frames"]))
        if row.table == "eval_log":
            self._evaluation_is_new = is_new
        self._sent.mark_sent(row)

    def _scalars(self, scalars: dict[str, float], env_frames: int) -> None:
        for name, value in scalars.items():
            self._writer.add_scalar(name, value, env_frames)

    def _notice(self, notice: Notice) -> None:
        if notice.kind == "inexact":  # comes before the first row of a resume
            self._sent.rewind(notice.step)
        self._writer.add_text(f"notice/{notice.kind}", notice.message, notice.env_frames)
        games = distributions(notice) if self._evaluation_is_new else {}  # its row came just before
        for name, values in games.items():
            self._writer.add_histogram(name, np.asarray(values), notice.env_frames)
        try:
            self._videos.send_fresh(self._add_video)
        finally:
            self._writer.flush()
            self._sent.save()

    def _add_video(self, env_frames: int, video: Path) -> None:
        """Write a video as a GIF. `SummaryWriter.add_video` would need another library."""
        from tensorboard.compat.proto.summary_pb2 import Summary

        height, width, data = gif(video)
        image = Summary.Image(height=height, width=width, colorspace=3, encoded_image_string=data)
        summary = Summary(value=[Summary.Value(tag="video", image=image)])
        self._writer.file_writer.add_summary(summary, env_frames, time.time())
