"""Resolve a path given by the user to a run and one of its checkpoints."""

from __future__ import annotations

from pathlib import Path

from atari_dqn.run.archive.archive import refuse_missing_archive
from atari_dqn.run.checkpoint.names import refuse_missing_manifest, run_folder
from atari_dqn.run.checkpoint.rewind import refuse_empty_store
from atari_dqn.run.checkpoint.store import CheckpointStore
from atari_dqn.run.directory import RunDirectory


def locate(path: Path) -> tuple[RunDirectory, Path]:
    """Return the run and the checkpoint of a path: a checkpoint itself, or the latest of a run directory.

    Raise `UserError` if it is neither, `DamagedError` if the checkpoint has no manifest.
    """
    refuse_missing_archive(path)
    folder = run_folder(path)
    run = RunDirectory.open(folder)
    if folder == path:
        refuse_empty_store(run)
        return run, CheckpointStore(run.checkpoints).latest()
    checkpoint = run.checkpoints / path.resolve().name
    refuse_missing_manifest(checkpoint)
    return run, checkpoint
