"""What a run has recorded of itself that playing on can be compared with, and where to begin for that."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from atari_dqn.checkpoint.store import CheckpointStore, read_manifest
from atari_dqn.metrics.event_log import LoggedEvent, logged_events
from atari_dqn.run import RunDirectory
from atari_dqn.train.resumption import Point, beginning_of, point_of, recorded_spec
from atari_dqn.verify.replay import REPEATED

_SAVED = re.compile(r"saved step ([\d,]+)")


@dataclass(frozen=True, kw_only=True)
class RecordedState:
    """The digest of a state that the run had, from a checkpoint or from the log of events."""

    step: int
    digest: str
    checkpoint: Path | None
    """The checkpoint, if it is still there."""

    @property
    def name(self) -> str:
        """The checkpoint's name, of one that was removed too."""
        return f"step_{self.step:09d}"


@dataclass(frozen=True, kw_only=True)
class Records:
    """All that a run has recorded, by agent step."""

    states: tuple[RecordedState, ...]
    """Oldest first."""
    rows: frozenset[int]
    """Steps of log rows."""
    inexact: tuple[int, ...]
    """Steps at which the run went on in a way that playing on does not repeat."""
    budget: int
    """Agent steps that the run was to have."""

    @property
    def last_step(self) -> int:
        """Where the records end."""
        return max([*self.rows, *(state.step for state in self.states)], default=0)

    def end(self, start: int, steps: int) -> int:
        """Return where to end that plays on for so many steps, and never for longer than the run itself."""
        length = self.last_step or self.budget
        last = self.last_step if start < self.last_step else start + length
        return min([start + steps, last, *(step for step in self.inexact if step > start)])

    def states_within(self, after: int, until: int) -> list[RecordedState]:
        """Return the states of steps in (after, until]."""
        return [state for state in self.states if after < state.step <= until]

    def rows_within(self, after: int, until: int) -> bool:
        """Return whether there are log rows of steps in (after, until]."""
        return any(after < step <= until for step in self.rows)


def records_of(run: RunDirectory) -> Records:
    """Read what a run has recorded."""
    spec = recorded_spec(run).spec
    events = logged_events(run.events)
    return Records(
        states=tuple(_states(run, events)),
        rows=frozenset(
            step
            for table in REPEATED
            for step, _ in playable_rows((run.tables / f"{table}.csv").read_text(errors="replace"))
        ),
        inexact=tuple(event.step for event in events if event.kind == "inexact"),
        budget=spec.training.total_frames // spec.env.frame_skip,
    )


def start_to_compare(run: RunDirectory, records: Records, *, steps: int, restores: bool) -> Point:
    """Return where to play on from: the newest point with a recorded state soon after it.

    Where there is none, the newest checkpoint with log rows soon after it, or else the run's beginning. A run
    whose state is not restored exactly is played from its beginning.
    """
    entries = list(reversed(CheckpointStore(run.checkpoints).catalog())) if restores else []
    for found_within in (records.states_within, records.rows_within):
        for entry in entries:
            if found_within(entry.step, records.end(entry.step, steps)):
                return point_of(run, entry.path)
    return beginning_of(run)


def _states(run: RunDirectory, events: list[LoggedEvent]) -> Iterator[RecordedState]:
    """Yield the states of the checkpoints that are kept, and of others that are in the events."""
    store = CheckpointStore(run.checkpoints)
    kept = {entry.step: store.folder / entry.path for entry in store.catalog()}
    digests = {step: str(read_manifest(path)["state_digest"]) for step, path in kept.items()}
    for step, digest in sorted((_saved_states(events) | digests).items()):
        yield RecordedState(step=step, digest=digest, checkpoint=kept.get(step))


def _saved_states(events: list[LoggedEvent]) -> dict[int, str]:
    """Return the digest of each state that was saved, by step: of a step that was saved twice, the later.

    A resume from a step takes the place of what was saved after that step, maybe with other threads.
    """
    states: dict[int, str] = {}
    for event in events:
        if event.kind == "resumed":
            states = {step: digest for step, digest in states.items() if step <= event.step}
        saved = _SAVED.match(event.message) if event.kind == "checkpoint" else None
        if saved and isinstance(digest := event.data.get("state_digest"), str):
            states[int(saved[1].replace(",", ""))] = digest
    return states


def playable_rows(text: str) -> Iterator[tuple[int, str]]:
    """Yield the rows of a table, each with its step, that playing on writes too.

    The final evaluation is no part of it, and neither is a line that a crash of the machine has torn.
    """
    header, *lines = text.splitlines()
    columns = header.split(",")
    for line, cells in zip(lines, csv.reader(lines), strict=True):
        row = dict(zip(columns, cells, strict=False))
        if row.get("eval_type") != "final" and row.get("step", "").isdecimal():
            yield int(row["step"]), line
