"""Playing on from a point of a run without touching it: what a fresh process sees, reduced to digests."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ParamSpec, TypeVar

from atari_dqn.checkpoint.store import CheckpointStore, Saved
from atari_dqn.checkpoint.tree import leaf_digest, leaves
from atari_dqn.devices import resolve_device
from atari_dqn.evaluate import evaluate
from atari_dqn.metrics.columns import TABLES
from atari_dqn.run import RunDirectory
from atari_dqn.train.launch import make_session, take_over
from atari_dqn.train.resumption import beginning_of, point_of, recorded_spec, reopened
from atari_dqn.train.run_sinks import RunSinks
from atari_dqn.types import StateDict

P = ParamSpec("P")
R = TypeVar("R")

REPEATED = tuple(sorted(TABLES.keys() - {"throughput_log"}))
"""Tables that hold nothing of how fast a machine is."""


@dataclass(frozen=True, kw_only=True)
class Trace:
    """What playing on came to."""

    states: dict[int, dict[str, str]]
    """By step: the digest of every part of the state, by its dotted path."""
    rows: dict[str, list[str]]
    """By table: the lines that were written."""
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


def in_fresh_process(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Return what `function` returns in a new interpreter; its errors are raised here."""
    with ProcessPoolExecutor(max_workers=1, mp_context=get_context("spawn")) as process:
        return process.submit(function, *args, **kwargs).result()


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
            # beyond the budget too: no schedule knows of it
            training.total_steps = max(training.total_steps, stops[-1] + 1)
            for stop in stops:
                session.run_until(stop)
                states[training.clock.steps] = digests_of(training.state_dict())
        played = evaluate(training.learner.online, spec, episodes=1)
        rows = {name: _lines(copy, name)[before[name] :] for name in REPEATED}
    return Trace(
        states=states,
        rows=rows,
        returns=tuple(episode.episode_return for episode in played),
        seconds=time.monotonic() - began,
    )


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
