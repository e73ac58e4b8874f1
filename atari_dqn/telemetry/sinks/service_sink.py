"""The common part of the sinks that send a run's events to a tracking service."""

from __future__ import annotations

from abc import ABC, abstractmethod

from atari_dqn.telemetry.events import Event, GateChanged, Notice, Row
from atari_dqn.telemetry.sinks.scalars import distributions, gate_scalars, row_scalars
from atari_dqn.telemetry.sinks.sent_rows import SentRows


class ServiceSink(ABC):
    """Sends the numbers of rows and gates, and the notices, to a run of a tracking service.

    A row that was sent before an exact resume is not sent again: it is the same. After an inexact one every
    row is sent, and the service has those that they replace too.
    """

    def __init__(self, sent: SentRows) -> None:
        self._sent = sent
        self._finished = False
        self._evaluation_is_new = True

    def handle(self, event: Event) -> None:
        """Send an event."""
        if isinstance(event, Row):
            is_new = self._sent.is_new(event)
            if is_new:
                self._send_scalars(row_scalars(event), int(event.values["env_frames"]))
            if event.table == "eval_log":
                self._evaluation_is_new = is_new
            self._sent.mark_sent(event)  # unless sending has failed, so that a resume sends the row
        elif isinstance(event, GateChanged):
            self._send_scalars(gate_scalars(event), event.env_frames)
        elif isinstance(event, Notice):
            self._finished |= event.kind == "finished"
            if event.kind == "inexact":  # comes before the first row of a resume
                self._sent.rewind(event.step)
            self._send_notice(event)
            self._sent.save()

    def close(self) -> None:
        """End the service's run: as finished, or as one that may be resumed."""
        self._sent.save()
        self._end(finished=self._finished)

    def _new_games(self, notice: Notice) -> dict[str, list[float]]:
        """Return the games of an evaluation as `distributions` does; none if they were sent before."""
        return distributions(notice) if self._evaluation_is_new else {}  # its row came just before

    @abstractmethod
    def _send_scalars(self, scalars: dict[str, float], env_frames: int) -> None:
        """Send numbers by name, at a number of emulator frames."""

    @abstractmethod
    def _send_notice(self, notice: Notice) -> None:
        """Send a notice, with what belongs to it."""

    @abstractmethod
    def _end(self, *, finished: bool) -> None:
        """End the service's run."""
