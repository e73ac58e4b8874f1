"""A video of each full evaluation, made beside the training.

The evaluation keeps its decisions, which costs next to nothing; a process of the lowest priority plays one
game again and encodes it. The folder is the queue: a recording without a video is yet to be made.
"""

from __future__ import annotations

import importlib.util
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import monotonic
from types import TracebackType

from atari_dqn.envs.processes import interrupts_blocked, parent_to_end_with
from atari_dqn.evaluation.traces import Tracer
from atari_dqn.files.atomic import prepare_folder
from atari_dqn.record.recorder import median_game, recording_of, source_of
from atari_dqn.record.recording import Recording, VideoOptions, recording_bytes, save_recording
from atari_dqn.run.directory import RunDirectory
from atari_dqn.run.scores import EvaluationEpisode, score_protocol
from atari_dqn.spec.schema import Spec
from atari_dqn.telemetry.events import Notify
from atari_dqn.train.training import Training

_NEEDED = ("av", "PIL")
FINAL_WAIT_SECONDS = 60.0
"""How long a run that has finished waits for its videos, all together."""
_KILLED_SECONDS = 5.0
"""How long a process that was killed may take to end: one that waits for a disk takes longer, and is left."""


class _Making:
    """A process that makes one video; what it prints goes into a file, which never blocks it."""

    def __init__(self, recording: Path) -> None:
        self.recording = recording
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - `close` closes it
        with interrupts_blocked():  # Ctrl-C in a terminal asks the run to end, which ends this too
            self._process = subprocess.Popen(  # noqa: S603 - a command of ours
                _command(recording), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self._errors
            )

    def ended(self, within_seconds: float = 0.0) -> bool:
        """Wait for the end; return whether it has come."""
        try:
            self._process.wait(within_seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def failure(self) -> str | None:
        """Return the end of what a process that failed has printed; None of one that did not."""
        self._errors.seek(0)
        text = self._errors.read().decode(errors="replace").strip()
        return text[-500:] if self._process.returncode else None

    def close(self) -> None:
        """End the process if it still runs, and remove what it has of its video."""
        self._process.kill()
        self.ended(_KILLED_SECONDS)
        self._errors.close()
        for partial in self.recording.parent.glob(f".{self.recording.stem}.*.partial"):
            partial.unlink(missing_ok=True)


class Videos:
    """Takes traced evaluations and has their videos made, one at a time, while it is entered."""

    def __init__(self, training: Training, spec: Spec, run: RunDirectory, notify: Notify) -> None:
        self._training, self._spec, self._run, self._notify = training, spec, run, notify
        self._active = False
        self._can_make = all(importlib.util.find_spec(name) for name in _NEEDED)
        self._making: _Making | None = None
        self._given_up: set[Path] = set()

    def __enter__(self) -> Videos:
        self._active = self._spec.system.evaluation_video
        if self._active and not self._can_make:
            self._notify(
                "video", "evaluations are recorded but not made videos: pip install 'atari-dqn[record]'"
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wait a while for the videos of a run that has ended well; of another its resume makes them."""
        try:
            if kind is None and self._making is not None:
                self._wait()
        finally:
            self._active = False
            if self._making is not None:
                self._making.close()
                self._making = None

    def tracer(self, kind: str) -> Tracer | None:
        """Return what an evaluation of this kind is to give its decisions, if it is to be recorded."""
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
        """Report a video that is done and begin the next; return at once."""
        if not self._active or not self._can_make:
            return
        if self._making is not None:
            if not self._making.ended():
                return
            self._report(self._making)
            self._making.close()
            self._making = None
        waiting = self._waiting()
        if waiting:
            self._making = _Making(waiting[0])

    def _wait(self) -> None:
        """Wait for the videos that are left, and name those that are not made in time."""
        names = ", ".join(_name(path) for path in self._waiting())
        self._notify("video", f"waiting up to {FINAL_WAIT_SECONDS:.0f} seconds for {names}")
        deadline = monotonic() + FINAL_WAIT_SECONDS
        while self._making is not None and self._making.ended(max(0.0, deadline - monotonic())):
            self.poll()
        for path in self._waiting():
            self._notify("video", f"not made in time: {_name(path)}; {_remedy(path)}")

    def _waiting(self) -> list[Path]:
        recordings = sorted(self._run.videos.glob("step_?????????.json"))
        return [
            path
            for path in recordings
            if path not in self._given_up and not path.with_suffix(".mp4").exists()
        ]

    def _report(self, making: _Making) -> None:
        failure, recording = making.failure(), making.recording
        if failure is None:
            self._notify("video", f"made {_name(recording)}")
        else:
            self._given_up.add(recording)
            self._notify("video", f"could not make {_name(recording)}: {failure}; {_remedy(recording)}")

    def _recording(self, kind: str, played: Sequence[EvaluationEpisode], tracer: Tracer) -> Recording:
        clock, info = self._training.clock, self._training.envs.info
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
            options=VideoOptions(),
        )


def _command(recording: Path) -> list[str]:
    """Return the command that makes the video of a recording, and ends with this process."""
    return [sys.executable, "-m", "atari_dqn.record", str(recording), str(parent_to_end_with() or "")]


def _name(recording: Path) -> str:
    return f"videos/{recording.stem}.mp4"


def _remedy(recording: Path) -> str:
    return f"`dqn record --replay {shlex.quote(str(recording))}` makes it"
