"""Folders of runs: the run directories that a command's arguments stand for."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from atari_dqn.run.directory import is_run


def expand_run_paths(paths: Sequence[Path]) -> list[Path]:
    """Return the run directories that paths stand for, each once.

    A run directory stands for itself. Any other folder stands for the run directories directly inside it, by
    name; where it holds none it stays in the list, so that the caller can name it.
    """
    found = (run for path in paths for run in ([path] if is_run(path) else runs_in(path) or [path]))
    return list(dict.fromkeys(found))


def runs_in(folder: Path) -> list[Path]:
    """Return the run directories directly inside a folder, by name; none where it cannot be listed.

    Hidden folders, such as those of runs that are being created, are left out, and so is a link to a run of
    the same folder.
    """
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries if entry.name[0] != "." and is_folder(entry))
    except (OSError, ValueError):
        return []
    runs = [run for name in names if is_run(run := folder / name)]
    own = {os.path.realpath(run) for run in runs if not run.is_symlink()}
    return [run for run in runs if not run.is_symlink() or os.path.realpath(run) not in own]


def is_folder(entry: os.DirEntry[str]) -> bool:
    """Return whether an entry is a folder, or a link to one."""
    try:
        return entry.is_dir()
    except OSError:  # a link in a circle
        return False
