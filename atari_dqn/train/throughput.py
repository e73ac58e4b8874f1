"""Compute the speed of each period and its time by part, the rows of throughput_log."""

from __future__ import annotations

from atari_dqn.telemetry.events import Row, Value
from atari_dqn.train.stopwatch import Stopwatch
from atari_dqn.types import Emulators


class Throughput:
    """Computes a row of throughput_log for each row of update_log, from a lap of the stopwatch."""

    def __init__(self, stopwatch: Stopwatch, envs: Emulators) -> None:
        self._stopwatch, self._envs = stopwatch, envs
        self._busy_seconds = 0.0
        self._env_frames: int | None = None
        self._updates = 0
        self.seconds = 0.0
        """Seconds of training in the period of the last row."""

    def begin(self, *, env_frames: int, updates: int) -> None:
        """Begin the first lap, at the counts from which a run starts or resumes."""
        self._env_frames, self._updates = env_frames, updates
        self._busy_seconds = self._envs.busy_seconds
        self._stopwatch.lap()

    def row(self, update_row: Row, *, elapsed_seconds: float) -> Row:
        """Compute the row of the period that ends with `update_row`."""
        values = update_row.values
        env_frames, updates = int(values["env_frames"]), int(values["updates"])
        assert self._env_frames is not None, "call begin first"
        seconds, parts = self._stopwatch.lap()
        self.seconds = seconds
        busy_seconds = (self._envs.busy_seconds - self._busy_seconds) / self._envs.num_processes
        shares: dict[str, Value] = {f"{part}_share": spent / seconds for part, spent in parts.items()}
        row: dict[str, Value] = {
            "step": values["step"],
            "env_frames": env_frames,
            "elapsed_seconds": elapsed_seconds,
            "frames_per_second": (env_frames - self._env_frames) / seconds,
            "updates_per_second": (updates - self._updates) / seconds,
            **shares,
            "other_share": 1 - sum(parts.values()) / seconds,
            "emulators_busy_share": busy_seconds / seconds,
        }
        self._env_frames, self._updates = env_frames, updates
        self._busy_seconds = self._envs.busy_seconds
        return Row(table="throughput_log", values=row)
