"""The specs that come with the program, found by name: `dqn train pong_quick`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

from atari_dqn.spec.suggest import did_you_mean

_PACKAGE = Path(__file__).parents[1]
_FOLDERS = (_PACKAGE / "shipped_runs", _PACKAGE.parent / "runs")
"""The copy that setup.py puts into a wheel; the folder of a checkout, which an editable installation uses."""

SWEEPS, TUNES = "sweeps", "tune"
"""The folders of the shipped sweeps and tune files, which are no specs."""


@cache
def shipped_specs() -> Mapping[str, Path]:
    """Map each shipped spec's name, its file name without the ending, to its file."""
    others = {_folder() / SWEEPS, _folder() / TUNES}
    return {path.stem: path for path in sorted(_folder().rglob("*.toml")) if others.isdisjoint(path.parents)}


@cache
def shipped_sweeps() -> Mapping[str, Path]:
    """Map the name of each sweep that comes with the program to its file."""
    return {path.stem: path for path in sorted((_folder() / SWEEPS).glob("*.toml"))}


@cache
def shipped_tunes() -> Mapping[str, Path]:
    """Map the name of each tune file that comes with the program to its file."""
    return {path.stem: path for path in sorted((_folder() / TUNES).glob("*.toml"))}


def _folder() -> Path:
    return next((folder for folder in _FOLDERS if folder.is_dir()), _FOLDERS[0])


def find_spec(path: Path) -> Path:
    """Return the spec that a user names: a file that exists, else the shipped one of that name."""
    return find_shipped(path, shipped_specs())


def find_shipped(
    path: Path, shipped: Mapping[str, Path], *, is_folder_of_kind: Callable[[Path], bool] | None = None
) -> Path:
    """Return the file or folder that a user names, else the file of that name in `shipped`.

    A folder of another kind does not hide a shipped file: run directories are often named after their specs.
    """
    if not is_name(path) or path.name not in shipped:
        return path
    is_of_kind = not path.is_dir() or (is_folder_of_kind is not None and is_folder_of_kind(path))
    return path if path.exists() and is_of_kind else shipped[path.name]


def is_name(path: Path) -> bool:
    """Return whether a path has no folder, so that it may be the name of a shipped spec."""
    return path.parts == (path.name,)


def nearest(path: Path) -> str:
    """Return a hint with the neighbour or the shipped spec whose name is nearest to a missing file's."""
    hint = did_you_mean(path.name, (neighbour.name for neighbour in path.parent.glob("*.toml")))
    return hint or (did_you_mean(path.stem, shipped_specs()) if is_name(path) else "")
