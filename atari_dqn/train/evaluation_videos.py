"""Render a video of each full evaluation while training continues.

The evaluation records its decisions, which is cheap; a process of the lowest priority plays one game back and
encodes it. The folder is the queue: a recording without a video is still to be rendered.
"""

from __future__ import annotations

import importlib.util
import re
import shlex
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from time import monotonic
from types import TracebackType

from atari_dqn.envs.processes import interrupts_blocked, own_command, parent_to_end_with
from atari_dqn.errors import UserError
from atari_dqn.evaluation.traces import Tracer
from atari_dqn.files.atomic import prepare_folder
from atari_dqn.record.recorder import median_game, recording_of, source_of
from atari_dqn.record.recording import Recording, VideoOptions, recording_bytes, save_numbered
from atari_dqn.run.checkpoint.names import checkpoint_name, files_of_step, named_step
from atari_dqn.run.directory import RunDirectory
from atari_dqn.run.scores import EvaluationEpisode
from atari_dqn.spec.protocol import Protocol
from atari_dqn.spec.schema import Spec
from atari_dqn.telemetry.events import Notify
from atari_dqn.train.learning import Learning

_NEEDED = ("av", "PIL")
_NAME = re.compile(r"(step_[0-9]+)(_[0-9]+)?")
"""The name of a recording of a run: that of a checkpoint, and a number if other weights have that name."""
FINAL_WAIT_SECONDS = 60.0
"""The total time that a finished run waits for its videos."""
_WAIT_SECONDS = 0.1
"""Duration of a wait, after which the run may have got a signal."""
_KILLED_SECONDS = 5.0
"""The time to wait for a killed process; one that is blocked by a disk takes longer and is abandoned."""


class _RenderProcess:
    """A process that renders one video; its output goes to a file, so that it never blocks."""

    def __init__(self, recording: Path) -> None:
        self.recording = recording
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - `close` closes it
        quiet = subprocess.DEVNULL
        try:
            with interrupts_blocked():  # Ctrl-C interrupts the run, which then ends this process
                self._process = subprocess.Popen(  # noqa: S603 - fixed command
                    _command(recording), stdin=quiet, stdout=quiet, stderr=self._errors
                )
        except BaseException:
            self._errors.close()
            raise

    def ended(self, within_seconds: float = 0.0) -> bool:
        """Wait for the process; return whether it has ended."""
        try:
            self._process.wait(within_seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def failure(self) -> str | None:
        """Return the end of the output of a failed process; None if it succeeded."""
        self._errors.seek(0)
        text = self._errors.read().decode(errors="replace").strip()
        return text[-500:] if self._process.returncode else None

    def close(self) -> None:
        """Kill the process if it is still running, and remove its partial video."""
        self._process.kill()
        self.ended(_KILLED_SECONDS)
        self._errors.close()
        for partial in self.recording.parent.glob(f".{self.recording.stem}.*.partial"):
            partial.unlink(missing_ok=True)


class EvaluationVideos:
    """Records traced evaluations and renders their videos, one at a time, inside a `with` block."""

    def __init__(self, training: Learning, spec: Spec, run: RunDirectory, notify: Notify) -> None:
        self._training, self._spec, self._run, self._notify = training, spec, run, notify
        self._active = False
        self._can_render = all(importlib.util.find_spec(name) for name in _NEEDED)
        self._process: _RenderProcess | None = None
        self._failed: set[Path] = set()
        self._stop: Callable[[], bool] = lambda: False

    def __enter__(self) -> EvaluationVideos:
        self._active = self._spec.system.evaluation_video
        if self._active and not self._can_render:
            self._notify(
                "video",
                "evaluations are recorded but not rendered as videos: pip install 'atari-dqn[record]'",
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wait for the videos if the run finished; otherwise its resume renders them."""
        try:
            if kind is None:
                if not self._stop():
                    self.poll()  # a run that is resumed at its end may have recordings from before
                self._wait()
        finally:
            self._active = False
            if self._process is not None:
                self._process.close()
                self._process = None

    def stop_waiting_when(self, stop: Callable[[], bool]) -> None:
        """Once `stop()` returns True, do not wait for videos."""
        self._stop = stop

    def tracer(self, kind: str) -> Tracer | None:
        """Return a tracer for an evaluation of this kind; None if it is not recorded."""
        return Tracer() if self._active and kind != "light" else None

    def record(
        self,
        played: Sequence[EvaluationEpisode],
        tracer: Tracer | None,
        *,
        protocol: Protocol,
        weights_sha256: str,
    ) -> None:
        """Save a recording of the median game of a traced evaluation, as the most typical one.

        `weights_sha256`: the digest of the weights, by which `dqn export` finds the video. A recording that
        cannot be written, as on a full disk, is reported and does not end the run.
        """
        if tracer is None:
            return
        try:
            self._save(self._recording(played, tracer, protocol, weights_sha256))
        except (OSError, UserError) as error:
            self._notify("video", f"the evaluation is not recorded: {error}")
        self.poll()

    def _save(self, recording: Recording) -> None:
        """Write a recording, unless it is there from before the run was resumed at an earlier step.

        Other weights may have been recorded at its step then; their files remain, and it gets a number.
        """
        folder, step, data = self._run.videos, recording.source.step, recording_bytes(recording)
        prepare_folder(folder)
        if all(path.read_bytes() != data for path in files_of_step(folder, step, ".json")):
            save_numbered(recording, folder / f"{checkpoint_name(step)}.json")

    def poll(self) -> None:
        """Report a finished video and start the next one, without waiting."""
        if not self._active or not self._can_render:
            return
        if self._process is not None:
            if not self._process.ended():
                return
            self._report(self._process)
            self._process.close()
            self._process = None
        for recording in self._pending():
            try:
                self._process = _RenderProcess(recording)
                return
            except OSError as error:  # too many processes, or no folder for temporary files
                self._failed.add(recording)
                self._notify("video", f"could not render {_name(recording)}: {error}; {_remedy(recording)}")

    def _wait(self) -> None:
        """Wait for the pending videos, and report those that are not rendered in time."""
        if not self._active or not self._can_render:
            return
        if self._process is not None and not self._stop():
            self._wait_for_process()
        for path in self._pending():
            self._notify("video", f"not rendered in time: {_name(path)}; {_remedy(path)}")

    def _wait_for_process(self) -> None:
        names = ", ".join(_name(path) for path in self._pending())
        self._notify("video", f"waiting up to {FINAL_WAIT_SECONDS:.0f} seconds for {names}")
        deadline = monotonic() + FINAL_WAIT_SECONDS
        while self._process is not None and monotonic() < deadline and not self._stop():
            if self._process.ended(_WAIT_SECONDS):
                self.poll()

    def _pending(self) -> list[Path]:
        recordings = sorted(path for path in self._run.videos.glob("step_*.json") if _is_of_run(path))
        return [
            path for path in recordings if path not in self._failed and not path.with_suffix(".mp4").exists()
        ]

    def _report(self, process: _RenderProcess) -> None:
        failure, recording = process.failure(), process.recording
        if failure is None:
            self._notify("video", f"rendered {_name(recording)}")
        else:
            self._failed.add(recording)
            self._notify("video", f"could not render {_name(recording)}: {failure}; {_remedy(recording)}")

    def _recording(
        self, played: Sequence[EvaluationEpisode], tracer: Tracer, protocol: Protocol, weights_sha256: str
    ) -> Recording:
        clock = self._training.clock
        source = source_of(
            protocol,
            checkpoint=f"{self._run.path.resolve().name}/checkpoints/{checkpoint_name(clock.steps)}",
            step=clock.steps,
            env_frames=clock.env_frames,
            weights_sha256=weights_sha256,
        )
        return recording_of(
            played,
            tracer,
            spec=self._spec,
            info=self._training.envs.info,
            source=source,
            episodes=[median_game(played)],
            choice=f"the median of {len(played)} games",
            options=VideoOptions(),
        )


def _command(recording: Path) -> list[str]:
    """Return the command that renders a recording and exits with this process."""
    return [*own_command("atari_dqn.record"), str(recording), str(parent_to_end_with() or "")]


def _is_of_run(recording: Path) -> bool:
    """Return whether a recording is of the run itself, by its name; `dqn record` adds that of a protocol."""
    found = _NAME.fullmatch(recording.stem)
    return found is not None and named_step(found[1]) >= 0


def _name(recording: Path) -> str:
    return f"videos/{recording.stem}.mp4"


def _remedy(recording: Path) -> str:
    return f"`dqn record --replay {shlex.quote(str(recording))}` renders it"
