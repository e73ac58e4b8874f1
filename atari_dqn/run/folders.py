"""Expand folders of runs given as command arguments to run directories."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from atari_dqn.run.directory import is_run

WEB_PAGE = Path("web") / "index.html"
"""Path in a run directory of the page that `dqn export RUN_DIR --web RUN_DIR/web` writes."""


def expand_run_paths(paths: Sequence[Path]) -> list[Path]:
    """Replace each folder that is not a run directory by the run directories directly inside it.

    The result has no duplicates; the runs of a folder are sorted by name. A folder without runs stays in the
    list, so that the caller can report it.
    """
    found = (run for path in paths for run in ([path] if is_run(path) else runs_in(path) or [path]))
    return list(dict.fromkeys(found))


def runs_in(folder: Path) -> list[Path]:
    """Return the run directories directly inside a folder, sorted by name; none if it cannot be listed.

    Hidden folders, such as runs being created, and links to a run in the same folder are left out.
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
    except OSError:  # a circular link
        return False
