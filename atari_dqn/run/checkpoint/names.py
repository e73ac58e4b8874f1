"""The names of checkpoints' directories, which order them by step, of their folder and of their manifests."""

from __future__ import annotations

import os
import re
from pathlib import Path

from atari_dqn.errors import DamagedError
from atari_dqn.files.atomic import exists, is_file

MANIFEST = "manifest.json"
CHECKPOINTS = "checkpoints"
_NAME = re.compile(r"step_([0-9]{9,18})")


def checkpoint_name(step: int) -> str:
    """Return the name of the directory of a checkpoint."""
    return f"step_{step:09d}"


def named_step(name: str) -> int:
    """Return the step in the name of a checkpoint's directory, by which they are ordered; −1 if it has none.

    The names themselves are not in order: after a billion steps they have more than nine digits.
    """
    found = _NAME.fullmatch(name)
    return int(found[1]) if found else -1


def refuse_missing_manifest(checkpoint: Path) -> None:
    """Raise `DamagedError` if a checkpoint has no manifest."""
    if not is_file(checkpoint / MANIFEST):
        raise DamagedError(f"{checkpoint / MANIFEST}: missing")


def is_named_as_checkpoint(path: Path) -> bool:
    """Return whether a resolved path has the name and the place of a checkpoint; it may be damaged."""
    return named_step(path.name) >= 0 and path.parent.name == CHECKPOINTS


def run_folder(path: Path) -> Path:
    """Return the run directory of a checkpoint, which may be damaged; any other path as it is.

    It is relative if `path` is.
    """
    if not exists(path):
        return path
    checkpoint = path.resolve()
    if not is_named_as_checkpoint(checkpoint) and not is_file(path / MANIFEST):
        return path
    folder = checkpoint.parent.parent
    return folder if path.is_absolute() else Path(os.path.relpath(folder))


def linked_name(link: Path) -> str | None:
    """Return the checkpoint that a link names, in the link's own folder; None if it names anything else."""
    target = str(link.readlink()) if link.is_symlink() else ""
    return target if named_step(target) >= 0 else None


def files_of_step(folder: Path, step: int, suffix: str) -> list[Path]:
    """Return the files NAME and NAME_… of a folder with a suffix, of which NAME is that of a checkpoint."""
    name = checkpoint_name(step)
    return [path for path in folder.glob(f"{name}*{suffix}") if path.stem.removeprefix(name)[:1] in ("", "_")]
