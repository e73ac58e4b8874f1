"""Resolve a path given by the user to a run and one of its checkpoints."""

from __future__ import annotations

from pathlib import Path

from atari_dqn.files.atomic import is_file
from atari_dqn.run.checkpoint.names import MANIFEST
from atari_dqn.run.checkpoint.rewind import refuse_empty_store
from atari_dqn.run.checkpoint.store import CheckpointStore
from atari_dqn.run.directory import RunDirectory


def locate(path: Path) -> tuple[RunDirectory, Path]:
    """Return the run and the checkpoint of a path: a checkpoint itself, or the latest of a run directory.

    Raise `UserError` if it is neither.
    """
    if is_file(path / MANIFEST):
        checkpoint = path.resolve()
        return RunDirectory.open(checkpoint.parent.parent), checkpoint
    run = RunDirectory.open(path)
    refuse_empty_store(run)
    return run, CheckpointStore(run.checkpoints).latest()
