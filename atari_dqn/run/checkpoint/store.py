"""Save and load the checkpoints of a run; a checkpoint is written aside and renamed when complete.

Training pauses while a snapshot is taken: copies of everything that changes, and a loan of the replay rows,
which do not change. A thread then writes the checkpoint while training continues; see `stages.py`.
"""

from __future__ import annotations

import copy
import shlex
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial as bound
from pathlib import Path

from atari_dqn.errors import ExplainedDamageError, InfrastructureError, UserError
from atari_dqn.files.failures import write_failure, writing
from atari_dqn.formatting import size
from atari_dqn.replay.rows import RingRows
from atari_dqn.run.checkpoint import removal, stages
from atari_dqn.run.checkpoint.background_work import BackgroundWork
from atari_dqn.run.checkpoint.catalog import CatalogEntry, entries_to_keep, read_catalog
from atari_dqn.run.checkpoint.layout import layout_of_rest
from atari_dqn.run.checkpoint.manifest import now, replace_bookkeeping, verify
from atari_dqn.run.checkpoint.names import checkpoint_name, linked_name, refuse_missing_manifest
from atari_dqn.run.checkpoint.reconcile import checkpoint_directories
from atari_dqn.run.checkpoint.row_saver import RowSaver
from atari_dqn.run.checkpoint.segments import SavedRows
from atari_dqn.run.checkpoint.stages import Snapshot
from atari_dqn.run.checkpoint.state_files import read_agent, read_rest
from atari_dqn.run.checkpoint.state_tree import detached, leaves
from atari_dqn.run.leases.guard import check_lease
from atari_dqn.types import StateDict

_CANCEL_SECONDS = 2.0


@dataclass(frozen=True, kw_only=True)
class Saved:
    """The step and the state digest of a saved checkpoint."""

    step: int
    state_digest: str
    leftovers: tuple[Path, ...] = ()
    """Folders of removed checkpoints whose files could not be removed."""


class CheckpointStore:
    """The folder `checkpoints/` of a run directory. One checkpoint is written at a time."""

    def __init__(
        self, folder: Path, *, keep_last: int = 1, keep_best: int = 1, save_replay: bool = True
    ) -> None:
        self.folder, self.keep_last, self.keep_best = folder, keep_last, keep_best
        self.save_replay = save_replay
        self._writer: BackgroundWork[Saved] = BackgroundWork()
        self._rows_before: SavedRows | None = None
        """The rows of the newest checkpoint, if the state continues from it."""

    def save(
        self,
        *,
        step: int,
        training: StateDict,
        bookkeeping: StateDict,
        eval_score: float | None,
        protocol: str | None = None,
        tag: str | None = None,
    ) -> str:
        """Save a state and return its digest; raise `UserError` if writing fails."""
        self.begin(
            step=step,
            training=training,
            bookkeeping=bookkeeping,
            eval_score=eval_score,
            protocol=protocol,
            tag=tag,
        )
        saved = self.finish()
        assert saved is not None
        return saved.state_digest

    def begin(
        self,
        *,
        step: int,
        training: StateDict,
        bookkeeping: StateDict,
        eval_score: float | None,
        protocol: str | None = None,
        tag: str | None = None,
        replaces: bool = False,
    ) -> bool:
        """Take a snapshot, and start to write it in the background; the state may change afterwards.

        The digest covers `training` alone. `bookkeeping` holds plain values that may differ between equal
        runs, such as the elapsed time. For a step that is already saved only the bookkeeping is replaced, and
        the score if one is given; with `replaces` the whole checkpoint, because the state has changed, unless
        it has a score or a tag, which belong to its state: then return False. Waits for the previous
        checkpoint, and raises its exception.
        """
        self.finish()
        entry = CatalogEntry(
            step=step,
            path=checkpoint_name(step),
            eval_score=eval_score,
            timestamp=now(),
            protocol=protocol,
            tag=tag,
        )
        saved = next((known for known in self.catalog() if known.step == step), None)
        is_rated = saved is not None and (saved.eval_score is not None or saved.tag is not None)
        bookkeeping = copy.deepcopy(bookkeeping)
        if saved is not None and (is_rated or not replaces):
            self._writer.begin(bound(self._update_saved, entry, bookkeeping))
            return not replaces
        snapshot = self._snapshot(step, training, bookkeeping)
        try:
            self._writer.begin(bound(self._save, entry, snapshot))
        except InfrastructureError:
            snapshot.rows.end()
            raise
        return True

    def finish(self) -> Saved | None:
        """Wait for the checkpoint being written, and return it; None if there is none.

        Raise `UserError` if writing failed, `DiskFullError` if the disk is full. Other checkpoints are
        unaffected.
        """
        return self._writer.finish()

    def poll(self) -> Saved | None:
        """Return the result of `finish` if it would not wait, else None."""
        return self.finish() if self._writer.done else None

    def wait(self) -> None:
        """Wait until nothing is being written and `latest` is up to date."""
        self._writer.wait()

    def cancel(self) -> None:
        """Abandon the checkpoint being written, because the process must exit at once."""
        self._writer.cancel(wait_seconds=_CANCEL_SECONDS)

    def continue_from(self, checkpoint: Path) -> None:
        """Reuse the segments of the checkpoint from which the state was loaded."""
        self._rows_before = saved_rows(read_rest(checkpoint))

    def point_to(self, step: int) -> None:
        """Make the checkpoint of a step the latest."""
        with writing(self.folder / "latest"):
            stages.update_links(self.folder, checkpoint_name(step))

    def tidy(self) -> None:
        """Remove partial files, and checkpoints that the catalog does not list.

        The run must be locked and reconciled.
        """
        check_lease()
        for path in self.folder.glob(".*.partial"):
            if path.is_symlink() or not path.is_dir():
                path.unlink()
            else:
                removal.remove(path)
        removal.remove_unlisted(self.folder, self.catalog())

    def catalog(self) -> list[CatalogEntry]:
        """Return the entries of the catalog, oldest first."""
        return read_catalog(self.folder)

    def latest(self) -> Path:
        """Return the newest checkpoint, even if its link is missing.

        Raise `UserError` if none was saved, `DamagedError` if it is missing or the link names anything else.
        """
        link = self.folder / "latest"
        if link.is_symlink() and linked_name(link) is None:
            raise ExplainedDamageError(
                f"{link}: points to {link.readlink()}, which is not a checkpoint of this run; "
                "remove the link: the newest checkpoint is found without it"
            )
        if link.is_symlink():
            path = self.folder / link.readlink()
        elif link.exists():  # a copy of a checkpoint in place of the link, as `scp -r` makes
            path = link
        elif there := checkpoint_directories(self.folder):
            path = there[-1]
        else:
            again = f"`dqn resume {shlex.quote(str(self.folder.parent))}` if the run has ended"
            raise UserError(f"{self.folder}: no checkpoint is saved yet; wait for the first one, or {again}")
        refuse_missing_manifest(path)
        return path

    def _snapshot(self, step: int, training: StateDict, bookkeeping: StateDict) -> Snapshot:
        copied = detached(training)
        path, rows = next((path, leaf) for path, leaf in leaves(copied) if isinstance(leaf, RingRows))
        saver = RowSaver(rows, before=self._rows_before, keep=self.save_replay)
        return Snapshot(step=step, training=copied, bookkeeping=bookkeeping, rows_path=path, rows=saver)

    def _save(self, entry: CatalogEntry, snapshot: Snapshot) -> Saved:
        final = self.folder / entry.path
        with self._writing(final, snapshot):
            digest = self._write(final, snapshot)
            self._publish(entry, entry.path)
        if self.save_replay:
            self._rows_before = snapshot.rows.saved_in(final)
        return self._saved(entry.step, digest)

    def _update_saved(self, entry: CatalogEntry, bookkeeping: StateDict) -> Saved:
        """Replace the bookkeeping of a saved step, and its score if it has one."""
        final = self.folder / entry.path
        check_lease()
        with writing(final):
            digest = replace_bookkeeping(final, bookkeeping)
            self._publish(entry if entry.eval_score is not None else None, entry.path)
        return self._saved(entry.step, digest)

    def _saved(self, step: int, digest: str) -> Saved:
        return Saved(step=step, state_digest=digest, leftovers=tuple(removal.leftovers(self.folder)))

    def _write(self, final: Path, snapshot: Snapshot) -> str:
        """Write a checkpoint and return its digest; remove its files if that fails."""
        partial = final.with_name(f".{final.name}.partial")
        self._check()
        shutil.rmtree(partial, ignore_errors=True)  # of a process that died before it was complete
        try:
            partial.mkdir(parents=True)
            stages.write_rows(partial, snapshot, self._check)
            self._check()
            stages.write_rest(partial, snapshot)
            self._check()
            digest = stages.write_manifest(partial, snapshot)
            stages.flush(partial)
            self._check()
            stages.put_in_place(partial, final)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise
        return digest

    def _check(self) -> None:
        """Raise `CancelledError` if the writing was cancelled; end the process if its lease is lost."""
        self._writer.check_cancelled()
        check_lease()

    def _publish(self, entry: CatalogEntry | None, newest: str) -> None:
        if entry is not None:
            stages.add_to_catalog(self.folder, entry)
        stages.update_links(self.folder, newest)
        kept = entries_to_keep(self.catalog(), keep_last=self.keep_last, keep_best=self.keep_best)
        stages.prune(self.folder, kept)

    @contextmanager
    def _writing(self, final: Path, snapshot: Snapshot) -> Iterator[None]:
        """Release the rows in any case; convert an `OSError` to a message with the space needed."""
        try:
            yield
        except OSError as error:
            check_lease()  # the process that took the run over removes unfinished checkpoints
            detail = (
                f" (the checkpoint takes about {size(snapshot.bytes_expected())}, "
                f"{size(shutil.disk_usage(self.folder).free)} are free)"
            )
            raise write_failure(final, error, detail=detail) from error
        finally:
            snapshot.rows.end()


def load_checkpoint(directory: Path, like: StateDict | None = None) -> tuple[StateDict, StateDict]:
    """Load the training state and the bookkeeping of a checkpoint after verifying every file.

    `like`: as in `read_state`.
    """
    bookkeeping: StateDict = verify(directory)["bookkeeping"]
    return read_state(directory, like), bookkeeping


def read_state(directory: Path, like: StateDict | None = None) -> StateDict:
    """Read the training state of a checkpoint whose files have been verified.

    `like`: the state of a new training, whose keys, types and sizes are checked before memory is allocated;
    None accepts any state. The rows of the replay are read from their files on demand.
    """
    layout, learner = (None, None) if like is None else (layout_of_rest(like), like["learner"])
    return {**read_rest(directory, layout), "learner": read_agent(directory, learner)}


def saved_rows(training: StateDict) -> SavedRows | None:
    """Return the rows of a loaded state; None if the replay was not saved."""
    return next((leaf for _, leaf in leaves(training) if isinstance(leaf, SavedRows)), None)
