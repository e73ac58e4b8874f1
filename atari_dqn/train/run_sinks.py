"""Where a run's events go: its own files, the views, and sinks that may fail without harm."""

from __future__ import annotations

from collections.abc import Sequence

from atari_dqn.run.directory import RunDirectory
from atari_dqn.spec.keys import flatten
from atari_dqn.spec.loader import ResolvedSpec
from atari_dqn.telemetry.events import Event, Notice, Sink
from atari_dqn.telemetry.sinks.background_sink import BackgroundSink
from atari_dqn.telemetry.sinks.options import SinkOptions
from atari_dqn.telemetry.sinks.target import Target
from atari_dqn.telemetry.writers import EventLog, Sinks, TableSink


class RunSinks(Sinks):
    """The sinks of a run: its tables and event log first, then the views, then those that may fail.

    What goes wrong with one of the last is told to the others as a notice, and is no error.
    """

    def __init__(
        self, run: RunDirectory, views: Sequence[Sink], sink_options: Sequence[BackgroundSink] = ()
    ) -> None:
        self.tables = TableSink(run.tables)
        self._outlets = sink_options
        self._step = self._env_frames = 0
        super().__init__([self.tables, EventLog(run.events), *views, *sink_options])

    def handle(self, event: Event) -> None:
        """Give the event to every sink."""
        if isinstance(event, Notice):
            self._step, self._env_frames = event.step, event.env_frames
        super().handle(event)
        self._pass_on_complaints()

    def close(self) -> None:
        """Close every sink, those that may fail first, so that the event log hears of it."""
        for outlet in self._outlets:
            outlet.close()
        self._pass_on_complaints()
        super().close()

    def _pass_on_complaints(self) -> None:
        for outlet in self._outlets:
            while (complaint := outlet.next_problem()) is not None:
                super().handle(
                    Notice(kind="sink", step=self._step, env_frames=self._env_frames, message=complaint)
                )


def open_sinks(sink_options: SinkOptions, resolved: ResolvedSpec, run: RunDirectory) -> list[BackgroundSink]:
    """Start the sinks that a run is to have besides."""
    values = flatten(resolved.spec)
    name = run.path.resolve().name
    return sink_options.open(
        Target(directory=run.path, name=name, track_label=resolved.track_label, values=values)
    )
