"""A run of the toy game that is interrupted and resumed, both times with the same sinks."""

import json
import os
import signal
from pathlib import Path

import pytest
from tiny import CPU, run

from atari_dqn.errors import InterruptedRunError
from atari_dqn.run.directory import RunDirectory
from atari_dqn.telemetry.events import Event, Row
from atari_dqn.telemetry.sinks.options import SinkOptions
from atari_dqn.train import launch

STOP_STEP = 200


class StopAt:
    """Interrupts the run, as Ctrl-C does."""

    def handle(self, event: Event) -> None:
        if isinstance(event, Row) and event.table == "update_log" and event.values["step"] == STOP_STEP:
            os.kill(os.getpid(), signal.SIGINT)

    def close(self) -> None:
        pass


def interrupt(path: Path, *sinks: str) -> None:
    """Interrupt a run after 800 of 1,200 frames."""
    with pytest.raises(InterruptedRunError):
        run(path, views=[StopAt()], sink_options=SinkOptions(sinks=sinks))


def resume(path: Path, *sinks: str) -> None:
    """Resume a run up to its end."""
    options = SinkOptions(sinks=sinks)
    launch.resume(RunDirectory.open(path), device=CPU, views=[], total_frames=None, sink_options=options)


def complaints(path: Path) -> list[str]:
    """Read the messages of failed sinks from the event log."""
    lines = [json.loads(line) for line in (path / "events.jsonl").read_text().splitlines()]
    return [line["message"] for line in lines if line["kind"] == "sink"]
