"""The stages of making a checkpoint, each a function, so that a test may kill the process in its place.

    write_rows → write_rest → write_manifest → flush → put_in_place  in `.step_….partial`
    enter → point → prune                                        in the catalog, the links, the folder

Killed before `put_in_place` has ended, a checkpoint is absent, and the next resume removes what there is of
it. Killed later, it is the newest: the next resume lists it if `enter` has not.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from atari_dqn.files.atomic import fsync_directory, json_document
from atari_dqn.run.checkpoint.catalog import CatalogEntry, best_first, read_catalog, write_catalog
from atari_dqn.run.checkpoint.manifest import MANIFEST, make_manifest
from atari_dqn.run.checkpoint.row_saver import RowSaver
from atari_dqn.run.checkpoint.state_files import write_state
from atari_dqn.run.checkpoint.state_tree import is_array, leaves, tree_digest
from atari_dqn.types import StateDict


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """What a checkpoint will hold: copies of a state, and its rows on loan."""

    step: int
    training: StateDict
    bookkeeping: StateDict
    rows_path: str
    """Where in `training` the rows are."""
    rows: RowSaver

    def digest(self) -> str:
        """Return the digest of the whole training state, saved or not, once the rows have theirs."""
        return tree_digest(self.training, known={self.rows_path: self.rows.digest})

    def bytes_expected(self) -> int:
        """Return what the checkpoint adds to the disk, about."""
        arrays: Iterator[int] = (leaf.nbytes for _, leaf in leaves(self.training) if is_array(leaf))
        return self.rows.bytes_expected() + sum(arrays)


def write_rows(partial: Path, snapshot: Snapshot, check_cancelled: Callable[[], None]) -> None:
    """Write the replay's rows, or take them over from the checkpoint before."""
    snapshot.rows.save(partial, check_cancelled)


def write_rest(partial: Path, snapshot: Snapshot) -> None:
    """Write everything else: copies that were made while training waited."""
    rest = {key: part for key, part in snapshot.training.items() if key != "learner"}
    if not snapshot.rows.keep:
        rest["replay"] = {"newest_frame": rest["replay"]["ring"]["newest_frame"]}
    write_state(partial, snapshot.training["learner"], rest, snapshot.rows.plain())


def write_manifest(partial: Path, snapshot: Snapshot) -> str:
    """Write what makes it whole, and return the state's digest."""
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
    """Wait until the disk holds every file and name of it."""
    for path in [*partial.rglob("*"), partial]:
        if path.is_dir():
            fsync_directory(path)
        else:
            with path.open("rb") as file:
                os.fsync(file.fileno())


def put_in_place(partial: Path, final: Path) -> None:
    """Give it its name, in one step."""
    partial.rename(final)
    fsync_directory(final.parent)


def enter(folder: Path, entry: CatalogEntry) -> None:
    """List it as the newest."""
    # A later step than the newest is of a past that a crash cut off from `latest`: it is played again.
    earlier = [known for known in read_catalog(folder) if known.step < entry.step]
    write_catalog(folder, [*earlier, entry])


def point(folder: Path, newest: str) -> None:
    """Switch the links to the newest and to the best, if there is one, each in one step."""
    _link(folder, "latest", newest)
    scored = best_first(read_catalog(folder))
    if scored:
        _link(folder, "best", scored[0].path)
    else:
        (folder / "best").unlink(missing_ok=True)


def prune(folder: Path, kept: Sequence[CatalogEntry]) -> None:
    """Remove every listed checkpoint but these; first from the catalog."""
    entries = read_catalog(folder)
    write_catalog(folder, kept)
    for entry in entries:
        if entry not in kept:
            remove(folder / entry.path)


def remove(path: Path) -> None:
    """Remove a folder, out of its place first: killed on the way, none that is half there has its name."""
    gone = path if path.name.startswith(".") else path.with_name(f".{path.name}.removed.partial")
    if gone != path:
        path.rename(gone)
    shutil.rmtree(gone)


def _link(folder: Path, link: str, name: str) -> None:
    fresh = folder / f".{link}.partial"
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(name)
    fresh.replace(folder / link)
