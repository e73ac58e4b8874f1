"""Read the records of a run (digests, log rows), and select the point from which `dqn verify` repeats it."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from atari_dqn.run.checkpoint.manifest import read_manifest
from atari_dqn.run.checkpoint.names import checkpoint_name
from atari_dqn.run.checkpoint.store import CheckpointStore
from atari_dqn.run.directory import RunDirectory
from atari_dqn.run.logged_events import LoggedEvent, logged_events
from atari_dqn.telemetry.columns import TABLES_ADDED
from atari_dqn.train.resume_exactness import MAY_DIFFER, concerns_threads
from atari_dqn.train.resume_point import ResumePoint, beginning_of, recorded_spec
from atari_dqn.train.resumption import resume_point
from atari_dqn.verify.repetition import REPEATED

_SAVED = re.compile(r"saved step ([\d,]+)")


@dataclass(frozen=True, kw_only=True)
class RecordedState:
    """The digest of a state of the run, from a checkpoint or from the event log."""

    step: int
    digest: str
    checkpoint: Path | None
    """The checkpoint; None if it has been removed."""

    @property
    def name(self) -> str:
        """Name of the checkpoint, also if it has been removed."""
        return checkpoint_name(self.step)


@dataclass(frozen=True, kw_only=True)
class InexactResume:
    """A reason why the run, resumed at a step, may differ from then on from an uninterrupted one."""

    step: int
    reason: str


@dataclass(frozen=True, kw_only=True)
class Records:
    """Everything that a run recorded, by agent step."""

    states: tuple[RecordedState, ...]
    """Oldest first."""
    rows: frozenset[int]
    """Agent steps of the log rows."""
    resumes: tuple[int, ...]
    """Agent steps of the resumes that no later one, from that step or an earlier one, replaced; ascending."""
    inexact: tuple[InexactResume, ...]
    """Those of them that were inexact; the run cannot be repeated across their steps."""
    budget: int
    """Planned length of the run, in agent steps."""

    @property
    def last_step(self) -> int:
        """Last agent step with a record; 0 if there is none."""
        return max([*self.rows, *(state.step for state in self.states)], default=0)

    def end(self, start: int, steps: int) -> int:
        """Return the last step to repeat: `start + steps`, limited by the records and inexact resumes."""
        length = self.last_step or self.budget
        last = self.last_step if start < self.last_step else start + length
        return min([start + steps, last, *(resume.step for resume in self.inexact if resume.step > start)])

    def inexact_until(self, start: int) -> list[InexactResume]:
        """Return the reasons of the resume that made the records from the step `start` on; none if exact.

        Another number of threads is left out, because a repetition takes that number.
        """
        latest = max((step for step in self.resumes if step <= start), default=None)
        return [
            resume for resume in self.inexact if resume.step == latest and not concerns_threads(resume.reason)
        ]

    def states_within(self, after: int, until: int) -> list[RecordedState]:
        """Return the recorded states at steps in (after, until]."""
        return [state for state in self.states if after < state.step <= until]

    def has_rows_within(self, after: int, until: int) -> bool:
        """Return whether there are log rows at steps in (after, until]."""
        return any(after < step <= until for step in self.rows)


def repeated_tables(run: RunDirectory) -> list[str]:
    """Return the names of the tables with which a repetition is compared; an earlier run may lack some."""
    return [
        table for table in REPEATED if table not in TABLES_ADDED or (run.tables / f"{table}.csv").exists()
    ]


def records_of(run: RunDirectory) -> Records:
    """Read the records of a run."""
    spec = recorded_spec(run).spec
    events = logged_events(run.events)
    resumes, inexact = _resumes(events)
    return Records(
        states=tuple(_states(run, events)),
        rows=frozenset(
            step
            for table in repeated_tables(run)
            for step, _ in repeated_rows((run.tables / f"{table}.csv").read_text(errors="replace"))
        ),
        resumes=resumes,
        inexact=inexact,
        budget=spec.training.total_frames // spec.env.frame_skip,
    )


def start_to_compare(run: RunDirectory, records: Records, *, steps: int, restores: bool) -> ResumePoint:
    """Select the point to repeat from: the newest checkpoint with a recorded state within `steps` after it.

    If there is none, the newest checkpoint with log rows within `steps` after it, otherwise the beginning of
    the run. `restores`: whether checkpoints of the run restore its state exactly; if not, the beginning is
    selected.
    """
    entries = list(reversed(CheckpointStore(run.checkpoints).catalog())) if restores else []
    for found_within in (records.states_within, records.has_rows_within):
        for entry in entries:
            if found_within(entry.step, records.end(entry.step, steps)):
                return resume_point(run, entry.path)
    return beginning_of(run)


def _states(run: RunDirectory, events: list[LoggedEvent]) -> Iterator[RecordedState]:
    """Yield the states of the existing checkpoints, and of removed ones that the event log names."""
    store = CheckpointStore(run.checkpoints)
    kept = {entry.step: store.folder / entry.path for entry in store.catalog()}
    digests = {step: str(read_manifest(path)["state_digest"]) for step, path in kept.items()}
    for step, digest in sorted((_saved_states(events) | digests).items()):
        yield RecordedState(step=step, digest=digest, checkpoint=kept.get(step))


def _saved_states(events: list[LoggedEvent]) -> dict[int, str]:
    """Return the digests of saved states by step; if a step was saved twice, the later one.

    A resume from a step replaces the states that were saved after that step, maybe with other threads.
    """
    states: dict[int, str] = {}
    for event in events:
        if event.kind == "resumed":
            states = {step: digest for step, digest in states.items() if step <= event.step}
        saved = _SAVED.match(event.message) if event.kind == "checkpoint" else None
        if saved and isinstance(digest := event.data.get("state_digest"), str):
            states[int(saved[1].replace(",", ""))] = digest
    return states


def _resumes(events: list[LoggedEvent]) -> tuple[tuple[int, ...], tuple[InexactResume, ...]]:
    """Return the steps of the resumes, and the inexact ones; an earlier or equal step replaces later ones."""
    steps: list[int] = []
    inexact: list[InexactResume] = []
    for event in events:
        if event.kind == "resumed":
            steps = [*(step for step in steps if step < event.step), event.step]
            inexact = [resume for resume in inexact if resume.step < event.step]
        if event.kind == "inexact":
            inexact.append(InexactResume(step=event.step, reason=event.message.removeprefix(MAY_DIFFER)))
    return tuple(steps), tuple(inexact)


def repeated_rows(text: str) -> Iterator[tuple[int, str]]:
    """Yield step and line of each row of a table that a repetition writes as well.

    The final evaluation is not repeated, and a last line that a crash of the machine left incomplete is
    skipped: it has no end.
    """
    header, *lines = text.rpartition("\n")[0].split("\n")
    columns = header.split(",")
    for line, cells in zip(lines, csv.reader(lines), strict=True):
        row = dict(zip(columns, cells, strict=False))
        if row.get("eval_type") != "final" and row.get("step", "").isdecimal():
            yield int(row["step"]), line
