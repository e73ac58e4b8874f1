"""The number of torch's threads that a run computes with: at its beginning, and after a resume changed it.

Their number changes rounding. `dqn resume --threads` may change it, and the run's events say at which step.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from atari_dqn.errors import UserError
from atari_dqn.run.directory import RunDirectory
from atari_dqn.run.event_log import logged_events
from atari_dqn.run.provenance import MOST_THREADS

KEY = "torch_threads"
"""Its name in the provenance, and in the data of an event of kind `resumed`."""


def threads_at(run: RunDirectory, step: int) -> int:
    """Return the number of threads with which a run goes on from a step."""
    return [threads for since, threads in _history(run) if since <= step][-1]


def steps_with_the_same_threads(run: RunDirectory, step: int) -> float:
    """Return the step until which the run kept its number of threads; infinity if it never changed."""
    history, threads = _history(run), threads_at(run, step)
    return min((since for since, other in history if since > step and other != threads), default=math.inf)


def check_threads(threads: int, cores: int) -> None:
    """Refuse, with a `UserError`, more threads than there are cores for them."""
    if threads > cores:
        raise UserError(f"--threads: found {threads}, expected at most {cores}, the cores of this process")


def _history(run: RunDirectory) -> list[tuple[int, int]]:
    """Return steps and the number of threads from there on, in order.

    A resume from an earlier step takes the place of what came after that step.
    """
    history: list[tuple[int, int]] = [(0, int(run.recorded(KEY)))]
    for step, threads in _resumes(run):
        history = [*(entry for entry in history if entry[0] < step), (step, threads)]
    return history


def _resumes(run: RunDirectory) -> Iterator[tuple[int, int]]:
    """Yield step and threads of each resume in the events; one of an earlier version has no threads."""
    for event in logged_events(run.events):
        threads = event.data.get(KEY)
        if event.kind == "resumed" and type(threads) is int and 0 < threads <= MOST_THREADS:
            yield event.step, threads
