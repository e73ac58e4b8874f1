"""Playing on from a point of a run without touching it: what a fresh process sees, reduced to digests."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.queues import SimpleQueue
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from atari_dqn.envs.processes import end_with_parent, parent_to_end_with
from atari_dqn.evaluation.evaluate import evaluate
from atari_dqn.machine.devices import resolve_device
from atari_dqn.run.checkpoint.store import CheckpointStore, Saved
from atari_dqn.run.checkpoint.tree import leaf_digest, leaves
from atari_dqn.run.directory import RunDirectory
from atari_dqn.telemetry.columns import TABLES
from atari_dqn.train.launch import make_session, take_over
from atari_dqn.train.resumption import beginning_of, point_of, recorded_spec, reopened
from atari_dqn.train.run_sinks import RunSinks
from atari_dqn.train.session import Session
from atari_dqn.types import StateDict

OnProgress = Callable[[int], None]
"""Takes the agent steps that have been reached."""
REPEATED = tuple(sorted(TABLES.keys() - {"throughput_log"}))
"""Tables that hold nothing of how fast a machine is."""
_REPORTS = 50
_LOOK_SECONDS = 0.2


_LISTENING: list[SimpleQueue[int]] = []
"""Where this process sends the steps it has reached, if another waits for them."""


@dataclass(frozen=True, kw_only=True)
class Trace:
    """What playing on came to."""

    states: dict[int, dict[str, str]]
    """By step: the digest of every part of the state, by its dotted path."""
    rows: dict[str, list[str]]
    """By table: the lines that were written."""
    updates: int
    """Gradient steps that were taken."""
    returns: tuple[float, ...]
    """Of an evaluation at the end."""
    seconds: float


class _Unsaved(CheckpointStore):
    """Takes checkpoints and keeps none."""

    def begin(self, **_: Any) -> None:
        """Save nothing."""

    def finish(self) -> Saved:
        """Tell of nothing."""
        return Saved(step=0, state_digest="")


def play_on_in_fresh_process(
    path: Path, checkpoint: str | None, device_name: str, stops: Sequence[int], on_progress: OnProgress
) -> Trace:
    """Return what `play_on` returns in a new interpreter; its errors are raised here."""
    context = get_context("spawn")
    steps = context.SimpleQueue()
    with ProcessPoolExecutor(
        1, mp_context=context, initializer=_begin, initargs=(parent_to_end_with(), steps)
    ) as process:
        playing = process.submit(play_on, path, checkpoint, device_name, stops)
        playing_on = True
        while playing_on:
            playing_on = bool(wait([playing], timeout=_LOOK_SECONDS).not_done)
            while not steps.empty():
                on_progress(steps.get())
        return playing.result()


def _begin(parent: int | None, steps: SimpleQueue[int]) -> None:
    """Have this process end with its parent, and `play_on` send the parent the steps it has reached."""
    end_with_parent(parent)
    _LISTENING.append(steps)


def play_on(path: Path, checkpoint: str | None, device_name: str, stops: Sequence[int]) -> Trace:
    """Go on from a checkpoint, or from the beginning, to each of the steps `stops`.

    Logs are written in a copy that is then removed.
    """
    began = time.monotonic()
    run, device = RunDirectory.open(path), resolve_device(device_name)
    point = beginning_of(run) if checkpoint is None else point_of(run, checkpoint)
    spec = recorded_spec(run).spec
    states: dict[int, dict[str, str]] = {}
    with TemporaryDirectory(prefix="dqn_verify_") as folder, reopened(point, device) as training:
        copy = _copy_of_logs(run, Path(folder) / "run")
        with closing(RunSinks(copy, [])) as sinks:
            session = make_session(training, spec, copy, sinks, _Unsaved(copy.checkpoints))
            take_over(session, point, device)
            before = {name: len(_lines(copy, name)) for name in REPEATED}
            updates_before = training.clock.updates
            # beyond the budget too: no schedule knows of it
            training.total_steps = max(training.total_steps, stops[-1] + 1)
            for stop in stops:
                _play_to(session, stop, report_steps=max(1, (stops[-1] - point.step) // _REPORTS))
                states[training.clock.steps] = digests_of(training.state_dict())
        played = evaluate(training.learner.online, spec, episodes=1)
        rows = {name: _lines(copy, name)[before[name] :] for name in REPEATED}
    return Trace(
        states=states,
        rows=rows,
        updates=training.clock.updates - updates_before,
        returns=tuple(episode.episode_return for episode in played),
        seconds=time.monotonic() - began,
    )


def _play_to(session: Session, stop: int, *, report_steps: int) -> None:
    """Play to a step, and send the step reached now and then."""
    clock = session.training.clock
    while clock.steps < stop:
        session.run_until(min(stop, clock.steps + report_steps))
        for steps in _LISTENING:
            steps.put(clock.steps)


def digests_of(state: StateDict) -> dict[str, str]:
    """Return the digest of every part of a state by its dotted path, in the state's order."""
    return {path: leaf_digest(leaf) for path, leaf in leaves(state)}


def _copy_of_logs(run: RunDirectory, path: Path) -> RunDirectory:
    """Copy all but the checkpoints, and the games of an evaluation, which are to be played."""
    copy = RunDirectory(path)
    copy.checkpoints.mkdir(parents=True)
    for file in run.path.iterdir():
        if file.is_file() and not file.name.startswith(".") and file != run.evaluation_progress:
            shutil.copyfile(file, path / file.name)
    return copy


def _lines(run: RunDirectory, table: str) -> list[str]:
    return (run.tables / f"{table}.csv").read_text().splitlines()
