"""What a user names, looked at before anything slow is imported: runs, specs, files to write."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from atari_dqn.errors import UserError

_MANIFEST = "manifest.json"  # of a checkpoint, in a module that imports torch


def run_named(path: Path) -> None:
    """Raise the error of a path that is neither a run nor one of its checkpoints."""
    from atari_dqn.files.atomic import is_file
    from atari_dqn.run.directory import RunDirectory

    RunDirectory.open(path.resolve().parent.parent if is_file(path / _MANIFEST) else path)


def spec_named(path: Path, overrides: Sequence[str] | None) -> None:
    """Raise the error of a spec that cannot be used."""
    from atari_dqn.spec.loader import load_spec

    load_spec(path, overrides or [])


def refuse_outputs(paths: Sequence[Path]) -> None:
    """Raise a `UserError` for an output that exists, is named twice, or has no folder to lie in."""
    for place, path in enumerate(paths):
        if path in paths[:place]:
            raise UserError(f"{path} is named twice; name another file for each output")
        if os.path.lexists(path):
            raise UserError(f"{path} exists and is never overwritten; remove it, or name another file")
        if not path.parent.is_dir():
            raise UserError(f"{path}: the folder {path.parent} is not there; make it, or name another file")
