"""Repeat a part of a run in a fresh process without changing the run, and digest the states it reaches."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.queues import SimpleQueue
from pathlib import Path
from typing import Any

from atari_dqn.envs.processes import end_with_parent, parent_to_end_with
from atari_dqn.errors import InfrastructureError
from atari_dqn.evaluation.evaluate import evaluate
from atari_dqn.files.temporary_folder import temporary_folder
from atari_dqn.machine.devices import resolve_device
from atari_dqn.run.checkpoint.state_tree import leaf_digest, leaves
from atari_dqn.run.checkpoint.store import CheckpointStore, Saved
from atari_dqn.run.directory import RunDirectory
from atari_dqn.telemetry.columns import TABLES
from atari_dqn.train.launch import restore
from atari_dqn.train.resume_point import beginning_of, recorded_spec
from atari_dqn.train.resumption import reopened, resume_point
from atari_dqn.train.run_session import make_session
from atari_dqn.train.run_sinks import RunSinks
from atari_dqn.train.session import Session
from atari_dqn.types import StateDict

OnProgress = Callable[[int], None]
"""A callback with the number of agent steps reached."""
REPEATED = tuple(sorted(TABLES.keys() - {"throughput_log"}))
"""Tables that do not depend on the speed of the machine."""
_REPORTS = 50
_POLL_SECONDS = 0.2


_STEP_QUEUES: list[SimpleQueue[int]] = []
"""Queues to which this process sends the steps it has reached."""


@dataclass(frozen=True, kw_only=True)
class Repetition:
    """The result of a repetition."""

    states: dict[int, dict[str, str]]
    """By agent step, the digest of every part of the state by its dotted path."""
    rows: dict[str, list[str]]
    """The lines that were written, by table."""
    updates: int
    """Number of gradient steps."""
    returns: tuple[float, ...]
    """Returns of an evaluation at the end."""
    seconds: float


class _DiscardingStore(CheckpointStore):
    """Discards checkpoints."""

    def begin(self, **_: Any) -> bool:
        """Discard a checkpoint, as if it were saved."""
        return True

    def finish(self) -> Saved:
        """Return an empty result."""
        return Saved(step=0, state_digest="")


def repeat_in_fresh_process(
    path: Path, checkpoint: str | None, device_name: str, stops: Sequence[int], on_progress: OnProgress
) -> Repetition:
    """Call `repeat_from` in a new interpreter, and return its result or raise its exception.

    `InfrastructureError` if the interpreter is killed, as for want of memory.
    """
    context = get_context("spawn")
    steps = context.SimpleQueue()
    with ProcessPoolExecutor(
        1, mp_context=context, initializer=_begin, initargs=(parent_to_end_with(), steps)
    ) as process:
        future = process.submit(repeat_from, path, checkpoint, device_name, stops)
        running = True
        while running:
            running = bool(wait([future], timeout=_POLL_SECONDS).not_done)
            while not steps.empty():
                on_progress(steps.get())
        try:
            return future.result()
        except BrokenProcessPool:
            raise InfrastructureError(
                f"the process that repeats {path} was killed or crashed; "
                "if the machine was out of memory, end other programs and verify again"
            ) from None


def _begin(parent: int | None, steps: SimpleQueue[int]) -> None:
    """Make this process exit with its parent, and `repeat_from` send its steps to the parent."""
    end_with_parent(parent)
    _STEP_QUEUES.append(steps)


def repeat_from(path: Path, checkpoint: str | None, device_name: str, stops: Sequence[int]) -> Repetition:
    """Continue from a checkpoint, or from the beginning, to each of the steps `stops`.

    Logs are written to a temporary copy.
    """
    began = time.monotonic()
    run, device = RunDirectory.open(path), resolve_device(device_name)
    point = beginning_of(run) if checkpoint is None else resume_point(run, checkpoint)
    spec = recorded_spec(run).spec
    states: dict[int, dict[str, str]] = {}
    with temporary_folder("dqn_verify_") as folder, reopened(point, device) as training:
        copy = _copy_of_logs(run, folder / "run")
        with closing(RunSinks(copy, [])) as sinks:
            session = make_session(training, spec, copy, sinks, _DiscardingStore(copy.checkpoints))
            restore(session, point, device)
            before = {name: len(_lines(copy, name)) for name in REPEATED}
            updates_before = training.clock.updates
            # may exceed the budget, on which no schedule depends
            training.total_steps = max(training.total_steps, stops[-1] + 1)
            for stop in stops:
                _train_to(session, stop, report_steps=max(1, (stops[-1] - point.step) // _REPORTS))
                states[training.clock.steps] = digests_of(training.state_dict())
        played = evaluate(training.acting_network, spec, episodes=1)
        rows = {name: _lines(copy, name)[before[name] :] for name in REPEATED}
    return Repetition(
        states=states,
        rows=rows,
        updates=training.clock.updates - updates_before,
        returns=tuple(episode.episode_return for episode in played),
        seconds=time.monotonic() - began,
    )


def _train_to(session: Session, stop: int, *, report_steps: int) -> None:
    """Train up to a step, and send the step reached every `report_steps`."""
    clock = session.training.clock
    while clock.steps < stop:
        session.run_until(min(stop, clock.steps + report_steps))
        for steps in _STEP_QUEUES:
            steps.put(clock.steps)


def digests_of(state: StateDict) -> dict[str, str]:
    """Return the digest of every part of a state by its dotted path, in the order of the state."""
    return {path: leaf_digest(leaf) for path, leaf in leaves(state)}


def _copy_of_logs(run: RunDirectory, path: Path) -> RunDirectory:
    """Copy all files except checkpoints and the finished games of an evaluation, which is played again."""
    copy = RunDirectory(path)
    copy.checkpoints.mkdir(parents=True)
    for file in run.path.iterdir():
        if file.is_file() and not file.name.startswith(".") and file != run.evaluation_progress:
            shutil.copyfile(file, path / file.name)
    return copy


def _lines(run: RunDirectory, table: str) -> list[str]:
    return (run.tables / f"{table}.csv").read_text().splitlines()
