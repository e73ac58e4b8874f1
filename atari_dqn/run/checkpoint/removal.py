"""Remove checkpoints from the disk.

A checkpoint is renamed first, so that no folder with the name of a checkpoint is ever incomplete. If its
files cannot be removed then, for example because another program has one open on a network disk, it is a
leftover, which the next checkpoint and the next resume try to remove again.
"""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Sequence
from pathlib import Path

from atari_dqn.run.checkpoint.catalog import CatalogEntry
from atari_dqn.run.checkpoint.names import named_step
from atari_dqn.run.leases.guard import check_lease


def remove(path: Path) -> None:
    """Rename a folder, unless its name is a temporary one, then remove it as far as possible."""
    check_lease()
    gone = path
    if not path.name.startswith("."):
        gone = path.with_name(f".{path.name}.removed.{secrets.token_hex(4)}.partial")
        path.rename(gone)
    shutil.rmtree(gone, ignore_errors=True)


def remove_unlisted(folder: Path, listed: Sequence[CatalogEntry], *, last_step: int | None = None) -> None:
    """Remove the directories that have the name of a checkpoint, and that no entry of the catalog names.

    Those of steps after `last_step` stay, if it is given.
    """
    names = {entry.path for entry in listed}
    for path in folder.glob("step_*"):
        step = named_step(path.name)
        is_unlisted = step >= 0 and path.name not in names and (last_step is None or step <= last_step)
        if is_unlisted and path.is_dir() and not path.is_symlink():
            remove(path)


def remove_leftovers(folder: Path) -> None:
    """Try again to remove what was renamed for its removal and is still there."""
    for path in leftovers(folder):
        remove(path)


def leftovers(folder: Path) -> list[Path]:
    """Return the folders that were renamed for their removal and are still there."""
    return sorted(folder.glob(".step_*.removed*.partial"))
