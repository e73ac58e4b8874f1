"""The names of checkpoints' directories, which order them by step, and of the manifest in each."""

from __future__ import annotations

import re
from pathlib import Path

MANIFEST = "manifest.json"
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


def linked_name(link: Path) -> str | None:
    """Return the checkpoint that a link names, in the link's own folder; None if it names anything else."""
    target = str(link.readlink()) if link.is_symlink() else ""
    return target if named_step(target) >= 0 else None


def files_of_step(folder: Path, step: int, suffix: str) -> list[Path]:
    """Return the files NAME and NAME_… of a folder with a suffix, of which NAME is that of a checkpoint."""
    name = checkpoint_name(step)
    return [path for path in folder.glob(f"{name}*{suffix}") if path.stem.removeprefix(name)[:1] in ("", "_")]
