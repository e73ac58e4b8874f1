"""Record which rows a tracking service has, because a resumed run writes rows again that were sent before.

An exact resume writes the same rows again, which are not sent twice. An inexact one writes others in their
place; these are sent, and the service keeps the earlier ones too.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from atari_dqn.errors import DamagedError
from atari_dqn.files.atomic import exists, write_json_atomically
from atari_dqn.files.documents import checked, read_json
from atari_dqn.telemetry.events import Row


class _State(msgspec.Struct):
    """The contents of the file."""

    run_id: str | None = None
    last_steps: dict[str, int] = msgspec.field(default_factory=dict)


class SentRows:
    """The id of the service's run, and the last agent step of each table that was sent, in a JSON file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        state = _read(path) if exists(path) else _State()
        self.run_id = state.run_id
        self._before = state.last_steps
        self._last = dict(self._before)

    def begin(self, run_id: str) -> None:
        """Save the id of the service's run."""
        self.run_id = run_id
        self.save()

    def is_new(self, row: Row) -> bool:
        """Return whether a row was not sent before this resume, and record it as sent."""
        step = int(row.values["step"])
        self._last[row.table] = max(step, self._last.get(row.table, -1))
        if row.table == "update_log":
            self.save()
        return step > self._before.get(row.table, -1)

    def rewind(self, step: int) -> None:
        """Count every row from here on as new: the run goes on differently from a step, an inexact resume."""
        self._before = {}
        self._last = {table: min(last, step) for table, last in self._last.items()}

    def save(self) -> None:
        """Write the file."""
        write_json_atomically(self._path, {"run_id": self.run_id, "last_steps": self._last})


def _read(path: Path) -> _State:
    try:
        return checked(path, read_json(path), _State)
    except DamagedError as error:
        remedy = "without the file, every row is sent to a new run of the service"
        raise DamagedError(f"{error}; {remedy}") from error
