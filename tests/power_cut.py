"""A run that ends as SIGKILL ends it, inside one process."""

import time
from pathlib import Path

from atari_dqn.telemetry.events import Event, Notice, Row


class PowerCut(BaseException):
    """Ends a run as SIGKILL does: nothing that is caught or finished on the way saves anything."""


class CutAt:
    """A view that cuts the power at a step, once a link that is written meanwhile leads to a checkpoint."""

    def __init__(self, step: int, *, latest: tuple[Path, str] | None = None) -> None:
        self.step, self.latest = step, latest

    def handle(self, event: Event) -> None:
        if isinstance(event, Row) and event.table == "update_log" and event.values["step"] >= self.step:
            while self.latest is not None and self.latest[0].resolve().name != self.latest[1]:
                time.sleep(0.01)
            raise PowerCut

    def close(self) -> None:
        pass


class CutOnceSaved:
    """A view that cuts the power when the checkpoint of a step is reported as saved."""

    def __init__(self, step: int) -> None:
        self.message = f"saved step {step:,}"

    def handle(self, event: Event) -> None:
        if isinstance(event, Notice) and event.message == self.message:
            raise PowerCut

    def close(self) -> None:
        pass
