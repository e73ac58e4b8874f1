"""A video of each full evaluation, made beside the training.

The evaluation keeps its decisions, which costs next to nothing; a process of the lowest priority plays one
game again and encodes it. The folder is the queue: a recording without a video is yet to be made.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Protocol

from atari_dqn.files import prepare_folder
from atari_dqn.record.recording import Look, Recording, recording_bytes, save_recording
from atari_dqn.recorder import median_game, recording_of, source_of
from atari_dqn.run import RunDirectory
from atari_dqn.scores import EvaluationEpisode, score_protocol
from atari_dqn.spec.schema import Spec
from atari_dqn.traces import Tracer
from atari_dqn.train.training import Training

_NEEDED = ("av", "PIL")


class Tell(Protocol):
    """Tells every sink of something that happened once."""

    def __call__(self, kind: str, message: str, /) -> None:
        """Take a kind of notice and its words."""
        ...


class Videos:
    """Takes traced evaluations and has their videos made, one at a time, while it is entered."""

    def __init__(self, training: Training, spec: Spec, run: RunDirectory, tell: Tell) -> None:
        self._training, self._spec, self._run, self._tell = training, spec, run, tell
        self._active = False
        self._can_make = all(importlib.util.find_spec(name) for name in _NEEDED)
        self._process: subprocess.Popen[str] | None = None
        self._making = Path()
        self._given_up: set[Path] = set()

    def __enter__(self) -> Videos:
        self._active = self._spec.system.evaluation_video
        if self._active and not self._can_make:
            self._tell(
                "video", "evaluations are recorded but not made videos: pip install 'atari-dqn[record]'"
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wait for the videos of a run that has ended well; of another they are made by its resume."""
        if kind is not None and self._process is not None:
            self._process.terminate()
            self._process.wait()
            self._process = None
        while kind is None and self._process is not None:
            self._process.wait()
            self.poll()
        self._active = False

    def tracer(self, kind: str) -> Tracer | None:
        """Return what an evaluation of this kind is to tell its decisions, if it is to be recorded."""
        return Tracer() if self._active and kind != "light" else None

    def take(self, kind: str, played: Sequence[EvaluationEpisode], tracer: Tracer | None) -> None:
        """Keep the recording of a traced evaluation's median game: what the agent does as a rule."""
        if tracer is None:
            return
        prepare_folder(self._run.videos)
        step = self._training.clock.steps
        path = self._run.videos / f"step_{step:09d}.json"
        recording = self._recording(kind, played, tracer)
        if not path.exists() or path.read_bytes() != recording_bytes(recording):
            # of a past that was cut off when the run was resumed
            path.with_suffix(".mp4").unlink(missing_ok=True)
            save_recording(recording, path)
        self.poll()

    def poll(self) -> None:
        """See whether a video is done, and begin the next; returns at once."""
        if not self._active or not self._can_make:
            return
        if self._process is not None:
            if self._process.poll() is None:
                return
            self._tell_made(self._process)
            self._process = None
        waiting = self._waiting()
        if waiting:
            self._making = waiting[0]
            self._process = subprocess.Popen(  # noqa: S603 - this interpreter, a path of ours
                [sys.executable, "-m", "atari_dqn.record", str(self._making)],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
            )

    def _waiting(self) -> list[Path]:
        recordings = sorted(self._run.videos.glob("step_?????????.json"))
        return [
            path
            for path in recordings
            if path not in self._given_up and not path.with_suffix(".mp4").exists()
        ]

    def _tell_made(self, process: subprocess.Popen[str]) -> None:
        _, errors = process.communicate()
        if process.returncode == 0:
            self._tell("video", f"made videos/{self._making.stem}.mp4")
        else:
            self._given_up.add(self._making)
            self._tell("video", f"could not make videos/{self._making.stem}.mp4: {errors.strip()[-500:]}")

    def _recording(self, kind: str, played: Sequence[EvaluationEpisode], tracer: Tracer) -> Recording:
        clock, info = self._training.clock, self._training.lanes.info
        protocol = score_protocol(
            self._spec,
            episodes=len(played),
            checkpoint="last" if kind == "final" else "current",
            rom_md5=info.rom_md5,
        )
        source = source_of(
            protocol,
            checkpoint=f"{self._run.path.resolve().name}/checkpoints/step_{clock.steps:09d}",
            step=clock.steps,
            env_frames=clock.env_frames,
        )
        return recording_of(
            played,
            tracer,
            spec=self._spec,
            info=info,
            source=source,
            episodes=[median_game(played)],
            choice=f"the median of {len(played)} games",
            look=Look(),
        )
