"""Combine the sinks of a run: its own files, the views, and optional sinks, whose failure is not an error."""

from __future__ import annotations

from collections.abc import Sequence

from atari_dqn.run.directory import RunDirectory
from atari_dqn.run.leases.guard import check_lease
from atari_dqn.spec.keys import flatten
from atari_dqn.spec.loader import ResolvedSpec
from atari_dqn.telemetry.events import Event, Notice, Sink
from atari_dqn.telemetry.sinks.background_sink import BackgroundSink
from atari_dqn.telemetry.sinks.options import SinkOptions
from atari_dqn.telemetry.sinks.target import Target
from atari_dqn.telemetry.writers import EventLog, Sinks, TableSink


class RunSinks(Sinks):
    """The sinks of a run in order: its tables and event log, the views, and the optional sinks.

    Problems of an optional sink are reported as notices to the others.
    """

    def __init__(
        self, run: RunDirectory, views: Sequence[Sink], optional: Sequence[BackgroundSink] = ()
    ) -> None:
        self.tables = TableSink(run.tables)
        self._optional = optional
        self._step = self._env_frames = 0
        super().__init__([self.tables, EventLog(run.events), *views, *optional])

    def handle(self, event: Event) -> None:
        """Pass the event to every sink; end the process first if its lease on the run is lost."""
        check_lease()
        if isinstance(event, Notice):
            self._step, self._env_frames = event.step, event.env_frames
        super().handle(event)
        self._report_problems()

    def handle_failure(self, notice: Notice) -> None:
        """Pass the notice of an error on, unless the lease is lost: the run is another process's then."""
        check_lease()
        super().handle_failure(notice)

    def close(self) -> None:
        """Close every sink, the optional ones first, so that their problems reach the event log."""
        for sink in self._optional:
            sink.close()
        self._report_problems()
        super().close()

    def _report_problems(self) -> None:
        for sink in self._optional:
            while (problem := sink.next_problem()) is not None:
                super().handle(
                    Notice(kind="sink", step=self._step, env_frames=self._env_frames, message=problem)
                )


def open_sinks(sink_options: SinkOptions, resolved: ResolvedSpec, run: RunDirectory) -> list[BackgroundSink]:
    """Start the optional sinks of a run."""
    values = flatten(resolved.spec)
    name = run.path.resolve().name
    return sink_options.open(
        Target(directory=run.path, name=name, track_label=resolved.track_label, values=values)
    )
