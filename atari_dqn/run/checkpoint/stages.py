"""The stages of saving a checkpoint, one function each, so that tests can kill the process at each stage.

    write_rows → write_rest → write_manifest → flush → put_in_place  in `.step_….partial`
    add_to_catalog → update_links → prune                        in the catalog, the links, the folder

If the process is killed before `put_in_place` has renamed the directory, the checkpoint does not exist, and
the next resume removes its partial files. A checkpoint of the same step that it was to replace is still
there, or gets its name back from `restore_replaced`. If the process is killed later, the checkpoint exists
and is the newest; the next resume adds it to the catalog if it is missing there.

`check_lease` precedes each change of the catalog, of a link and of a folder: while a disk does not answer,
another process may take the run over.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from atari_dqn.files.atomic import fsync_directory, json_document
from atari_dqn.run.checkpoint import removal
from atari_dqn.run.checkpoint.catalog import CatalogEntry, best_first, read_catalog, write_catalog
from atari_dqn.run.checkpoint.layout import without_rows
from atari_dqn.run.checkpoint.manifest import make_manifest
from atari_dqn.run.checkpoint.names import MANIFEST
from atari_dqn.run.checkpoint.row_saver import RowSaver
from atari_dqn.run.checkpoint.state_files import write_state
from atari_dqn.run.checkpoint.state_tree import is_array, leaves, tree_digest
from atari_dqn.run.leases.guard import check_lease
from atari_dqn.types import StateDict

_REPLACED = ".replaced.partial"


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """The contents of a checkpoint to be written: copies of the state, and its rows on loan."""

    step: int
    training: StateDict
    bookkeeping: StateDict
    rows_path: str
    """The dotted path of the rows in `training`."""
    rows: RowSaver

    def digest(self) -> str:
        """Return the digest of the complete training state; the rows must have been saved."""
        return tree_digest(self.training, known={self.rows_path: self.rows.digest})

    def bytes_expected(self) -> int:
        """Estimate the bytes that the checkpoint adds to the disk."""
        arrays: Iterator[int] = (leaf.nbytes for _, leaf in leaves(self.training) if is_array(leaf))
        return self.rows.bytes_expected() + sum(arrays)


def write_rows(partial: Path, snapshot: Snapshot, check_cancelled: Callable[[], None]) -> None:
    """Write the rows of the replay, or link them from the previous checkpoint."""
    snapshot.rows.save(partial, check_cancelled)


def write_rest(partial: Path, snapshot: Snapshot) -> None:
    """Write everything else, from copies that were made while training was paused."""
    rest = {key: part for key, part in snapshot.training.items() if key != "learner"}
    if not snapshot.rows.keep:
        rest = without_rows(rest)
    write_state(partial, snapshot.training["learner"], rest, snapshot.rows.plain())


def write_manifest(partial: Path, snapshot: Snapshot) -> str:
    """Write the manifest, and return the digest of the state."""
    digest = snapshot.digest()
    manifest = make_manifest(
        partial,
        step=snapshot.step,
        digest=digest,
        bookkeeping=snapshot.bookkeeping,
        segments=snapshot.rows.segments,
        replay_saved=snapshot.rows.keep,
    )
    (partial / MANIFEST).write_bytes(json_document(manifest))
    return digest


def flush(partial: Path) -> None:
    """Flush every file and directory to disk."""
    for path in [*partial.rglob("*"), partial]:
        if path.is_dir():
            fsync_directory(path)
        else:
            with path.open("rb") as file:
                os.fsync(file.fileno())


def put_in_place(partial: Path, final: Path) -> None:
    """Rename the finished directory to its final name, and remove a directory that has this name.

    That can be a checkpoint of the same step and another state, or one that never was in the catalog. It is
    renamed first, so that `restore_replaced` can restore it if the process is killed in between.
    """
    former = final.with_name(f".{final.name}{_REPLACED}")
    shutil.rmtree(former, ignore_errors=True)
    if final.exists():
        final.rename(former)
    try:
        partial.rename(final)
    except OSError:
        restore_replaced(final.parent)
        raise
    fsync_directory(final.parent)
    shutil.rmtree(former, ignore_errors=True)


def restore_replaced(folder: Path) -> None:
    """Undo an interrupted `put_in_place`: rename a replaced checkpoint back if no new one has its name."""
    for former in folder.glob(f".step_*{_REPLACED}"):
        final = folder / former.name.removeprefix(".").removesuffix(_REPLACED)
        if not final.exists():
            former.rename(final)


def add_to_catalog(folder: Path, entry: CatalogEntry) -> None:
    """Add a checkpoint to the catalog as the newest."""
    # Later steps belong to a state that was lost in a crash; they are repeated.
    earlier = [known for known in read_catalog(folder) if known.step < entry.step]
    check_lease()
    write_catalog(folder, [*earlier, entry])


def update_links(folder: Path, newest: str) -> None:
    """Update the links `latest` and `best` (if there is a best), each atomically."""
    _link(folder, "latest", newest)
    scored = best_first(read_catalog(folder))
    if scored:
        _link(folder, "best", scored[0].path)
    else:
        check_lease()
        _remove_copy(folder / "best")
        (folder / "best").unlink(missing_ok=True)


def prune(folder: Path, kept: Sequence[CatalogEntry]) -> None:
    """Remove all other checkpoints, first from the catalog, then from the disk.

    That includes one that the catalog does not list, because writing the catalog failed after the checkpoint.
    A checkpoint later than these stays: a process that has taken the run over in the meantime has saved it.
    """
    check_lease()
    write_catalog(folder, kept)
    removal.remove_leftovers(folder)
    removal.remove_unlisted(folder, kept, last_step=kept[-1].step)


def _link(folder: Path, link: str, name: str) -> None:
    fresh = folder / f".{link}.partial"
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(name)
    check_lease()
    _remove_copy(folder / link)
    fresh.replace(folder / link)


def _remove_copy(link: Path) -> None:
    """Remove a copy of a checkpoint in place of a link to it, as `scp -r` makes."""
    if link.is_dir() and not link.is_symlink():
        removal.remove(link)
