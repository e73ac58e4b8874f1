"""Open a run, or an archive as a run, for reading."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from atari_dqn.errors import DamagedError, UserError
from atari_dqn.files.failures import writing
from atari_dqn.files.temporary_folder import temporary_folder
from atari_dqn.run.archive.archive import is_archive, read_archive, write_parts
from atari_dqn.run.directory import RunDirectory


@contextmanager
def opened_run(path: Path) -> Iterator[RunDirectory]:
    """Yield the directory of a run, for a block that reads it.

    The files of an archive are in a temporary folder meanwhile; the weights and videos are left out. Errors
    name the archive instead of that folder. Raise `UserError` if the path is neither a run nor an archive,
    `DamagedError` if it is damaged.
    """
    if not is_archive(path):
        yield RunDirectory.open(path)
        return
    archive = read_archive(path)
    small = {name: data for name, data in archive.parts.items() if name.endswith((".toml", ".json", ".csv"))}
    with temporary_folder("dqn-") as folder:
        with writing(folder):
            write_parts(small, folder)
        try:
            yield RunDirectory.open(folder)
        except (UserError, DamagedError) as error:
            error.args = tuple(str(text).replace(str(folder), str(path)) for text in error.args)
            raise


def results_folder(path: Path) -> Path:
    """Return the folder for scores and videos of an archive: itself if it is imported, or one next to it."""
    return path if path.is_dir() else path.with_name(f"{path.stem}_results")
