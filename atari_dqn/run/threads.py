"""Determine the number of torch's threads at each step of a run from its files.

The number affects rounding. A run begins with the number in provenance.json. `dqn resume --threads` may
change it; the event `resumed` records the new number, and so does every later checkpoint.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from atari_dqn.errors import UserError
from atari_dqn.run.directory import RunDirectory
from atari_dqn.run.logged_events import logged_events
from atari_dqn.run.provenance import MOST_THREADS

KEY = "torch_threads"
"""The key in provenance.json, in the bookkeeping of checkpoints, and in events of kind `resumed`."""


def threads_at(run: RunDirectory, step: int, *, saved: int | None = None) -> int:
    """Return the number of threads with which a run continues from a step.

    `saved`: the number in the checkpoint of the step, None if an earlier version saved it. It counts if the
    event log has no resume up to the step, for example because the log was lost.
    """
    return [threads for since, threads in _history(run, saved) if since <= step][-1]


def steps_with_the_same_threads(run: RunDirectory, step: int, *, saved: int | None = None) -> float:
    """Return the next step at which the number of threads changed; infinity if there is none."""
    history, threads = _history(run, saved), threads_at(run, step, saved=saved)
    return min((since for since, other in history if since > step and other != threads), default=math.inf)


def check_threads(name: str, threads: int, cores: int) -> None:
    """Raise `UserError` with the name of the option or key if there are more threads than cores."""
    if threads > cores:
        raise UserError(f"{name}: found {threads}, expected at most {cores}, the cores of this process")


def _history(run: RunDirectory, saved: int | None) -> list[tuple[int, int]]:
    """Return pairs of a step and the number of threads from there on, in order.

    A resume from an earlier step replaces the history after that step.
    """
    history: list[tuple[int, int]] = [(0, saved or int(run.recorded(KEY)))]
    for step, threads in _resumes(run):
        history = [*(entry for entry in history if entry[0] < step), (step, threads)]
    return history


def _resumes(run: RunDirectory) -> Iterator[tuple[int, int]]:
    """Yield step and threads of each resume in the event log that records its threads."""
    for event in logged_events(run.events):
        threads = event.data.get(KEY)
        if event.kind == "resumed" and type(threads) is int and 0 < threads <= MOST_THREADS:
            yield event.step, threads
