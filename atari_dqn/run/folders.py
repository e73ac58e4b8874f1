"""Find the run directories below folders, those of sweeps included, and archives."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path

from atari_dqn.errors import DamagedError, UserError
from atari_dqn.files.permission import is_closed
from atari_dqn.run.archive.archive import SUFFIX, is_archive_file
from atari_dqn.run.directory import is_run
from atari_dqn.run.folder_kinds import is_tune
from atari_dqn.run.sweep.folder import OWN_FOLDER, SweepFolder, is_sweep
from atari_dqn.run.sweep.record import read_record

WEB_PAGE = Path("web") / "index.html"
"""Path in a run directory of the page that `dqn export RUN_DIR --web RUN_DIR/web` writes."""
_NEVER_ENTERED = {"checkpoints", "diagnostics", "evaluations", "videos", "tensorboard", "wandb", "parquet"}
_MOST_LEVELS = 4


def expand_run_paths(paths: Sequence[Path], *, archives: bool = False) -> list[Path]:
    """Replace each folder that is not a run directory by the run directories below it, those of sweeps too.

    `archives`: whether the files of archives count as runs. The result has each run once, also where a link
    leads to it; the runs of a folder are sorted by name, those directly in it first, and those of a sweep in
    the order of its record. A tune, whose runs are in a folder of their own, a folder without runs, and one
    that may not be read stay in the list, so that the caller can report them. Raise `UserError` for a path
    that does not exist.
    """
    missing = [str(path) for path in paths if not os.path.lexists(path)]
    if missing:
        raise UserError(f"{', '.join(missing)}: not found; expected a run, a folder of runs or an archive")
    found = ([path] if is_run(path) else _runs_below(path, archives=archives) or [path] for path in paths)
    once: dict[str, Path] = {}
    for path in chain.from_iterable(found):
        once.setdefault(os.path.realpath(path), path)
    return list(once.values())


def folders_below(root: Path, *, is_entered: Callable[[Path], bool]) -> Iterator[tuple[Path, int]]:
    """Yield a folder and those below it with their levels, each once even if several links lead to it.

    Links come last, so that a run has the name of its own folder. Four levels are searched. Runs below the
    root, folders that hold no runs, hidden ones, such as runs being created, and those for which `is_entered`
    is false are not entered. What cannot be listed is left out.
    """
    waiting, visited = deque([(root, 0)]), set()
    while waiting:
        folder, level = waiting.popleft()
        if (target := os.path.realpath(folder)) in visited:
            continue
        visited.add(target)
        yield folder, level
        if level < _MOST_LEVELS and not (level and is_run(folder)) and is_entered(folder):
            for child in _children(folder):
                add = waiting.append if child.is_symlink() else waiting.appendleft
                add((child, level + 1))


def _runs_below(folder: Path, *, archives: bool) -> list[Path]:
    """Return the runs, tunes and closed folders below a folder, or the folder itself if it is a tune."""
    levels: dict[Path, int] = {}
    for path, level in folders_below(folder, is_entered=lambda path: not is_tune(path)):
        if is_run(path) or is_tune(path) or is_closed(path):
            levels[path] = level
        elif archives:
            levels |= dict.fromkeys(filter(is_archive_file, path.glob(f"[!.]*{SUFFIX}")), level + 1)
    places = dict(_places_in_sweeps({path.parent for path in levels}))
    other = len(places)
    return sorted(levels, key=lambda path: (levels[path], path.parent, places.get(path, other), path))


def _places_in_sweeps(folders: Iterable[Path]) -> Iterator[tuple[Path, int]]:
    """Yield the runs that the sweeps in some folders record, with their places in the order of the sweep.

    Without a record that can be read they have none: reading the runs does not need it.
    """
    for folder in filter(is_sweep, folders):
        with suppress(UserError, DamagedError):
            places = read_record(SweepFolder(folder).record).places()
            yield from ((folder / name, place) for name, place in places.items())


def _children(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as found:
            return sorted(Path(entry.path) for entry in found if _is_folder(entry) and _may_hold_runs(entry))
    except (OSError, ValueError):
        return []


def _is_folder(entry: os.DirEntry[str]) -> bool:
    """Return whether an entry is a folder, or a link to one."""
    try:
        return entry.is_dir()
    except OSError:  # a circular link
        return False


def _may_hold_runs(entry: os.DirEntry[str]) -> bool:
    is_of_sweep = entry.name == OWN_FOLDER and is_sweep(Path(entry.path).parent)
    return not entry.name.startswith(".") and entry.name not in _NEVER_ENTERED and not is_of_sweep
