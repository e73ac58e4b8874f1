"""Check that the files of a run are undamaged.

These are the checkpoints, spec, provenance, logs and summary, the scores by `dqn eval`, and the recordings.
Videos and the files of sinks have no digest; they are not checked.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from atari_dqn.errors import DamagedError, UserError
from atari_dqn.files.documents import read_json
from atari_dqn.record.recording import load_recording
from atari_dqn.run.checkpoint.bookkeeping import check_bookkeeping
from atari_dqn.run.checkpoint.catalog import CATALOG, best_first
from atari_dqn.run.checkpoint.manifest import verify
from atari_dqn.run.checkpoint.names import MANIFEST
from atari_dqn.run.checkpoint.reconcile import checkpoint_directories, refuse_wrong_place
from atari_dqn.run.checkpoint.rewind import refuse_empty_store, refuse_lost_catalog
from atari_dqn.run.checkpoint.store import CheckpointStore
from atari_dqn.run.directory import RunDirectory
from atari_dqn.run.recorded_scores import check_score
from atari_dqn.run.scores import EvaluationScore
from atari_dqn.train.resume_point import check_records, resume_command
from atari_dqn.train.resumption import suggesting_intact_checkpoint
from atari_dqn.train.summary import sealed_summary


@dataclass(frozen=True, kw_only=True)
class CheckedFiles:
    """The files that were checked and found undamaged."""

    checkpoints: tuple[str, ...]
    files: int
    bytes: int


def check_run(run: RunDirectory) -> CheckedFiles:
    """Check the files of a run; raise `DamagedError` for the first damaged one."""
    store = CheckpointStore(run.checkpoints)
    with suggesting_intact_checkpoint(run):
        manifests = _checked_state(run, store)
    _check_summary(run, manifests)
    if run.summary.exists():  # a kill leaves links that the next resume mends
        _check_targets(store)
    results = _checked_results(run)
    sizes = [entry["bytes"] for manifest in manifests.values() for entry in manifest["files"].values()]
    other_sizes = [*run.file_sizes(), *(path.stat().st_size for path in results)]
    return CheckedFiles(
        checkpoints=tuple(manifests), files=len(sizes) + len(other_sizes), bytes=sum([*sizes, *other_sizes])
    )


def _checked_state(run: RunDirectory, store: CheckpointStore) -> dict[str, dict[str, Any]]:
    """Check the files that a resume needs, and return the manifests of the checkpoints."""
    refuse_lost_catalog(store)
    refuse_empty_store(run)
    manifests = {path.name: _checked(run, path) for path in checkpoint_directories(store.folder)}
    _check_catalog(store, manifests)
    _check_links(store, manifests)
    return manifests


def _checked(run: RunDirectory, checkpoint: Path) -> dict[str, Any]:
    manifest = verify(checkpoint)
    check_bookkeeping(checkpoint / MANIFEST, manifest["bookkeeping"])
    refuse_wrong_place(checkpoint, manifest["step"])
    check_records(run, manifest["bookkeeping"].get("files", {}))
    return manifest


def _check_catalog(store: CheckpointStore, manifests: dict[str, dict[str, Any]]) -> None:
    """Compare the catalog with the manifests of the checkpoints that it lists."""
    path = store.folder / CATALOG
    for entry in store.catalog():
        manifest = manifests.get(entry.path)
        if manifest is None:
            raise DamagedError(f"{store.folder / entry.path / MANIFEST}: missing, though {path} lists it")
        if (entry.eval_score, entry.protocol) != _score_at(manifest):
            raise DamagedError(f"{path}: differs from the manifest of {entry.path}; the file is damaged")


def _score_at(manifest: dict[str, Any]) -> tuple[float | None, str | None]:
    """Return mean return and protocol of the full evaluation at a checkpoint's step; None without one."""
    kept = manifest["bookkeeping"]
    scores = {step: EvaluationScore.of_state(score) for step, score in kept["scores"]}
    score = scores.get(manifest["step"])
    return (score.mean_return, kept["score_protocol"]) if score else (None, None)


def _check_links(store: CheckpointStore, manifests: dict[str, dict[str, Any]]) -> None:
    for name in ("latest", "best"):
        link = store.folder / name
        if link.is_symlink() and str(link.readlink()) not in manifests:
            raise DamagedError(f"{link}: points to {link.readlink()}, which is not a checkpoint of this run")
        if link.exists() and not link.is_symlink():
            raise DamagedError(f"{link}: is not a link to a checkpoint")


def _check_targets(store: CheckpointStore) -> None:
    """Compare the links with the catalog: other commands follow them."""
    catalog = store.catalog()
    for name, entries in (("latest", catalog[-1:]), ("best", best_first(catalog)[:1])):
        link = store.folder / name
        if link.is_symlink() and entries and str(link.readlink()) != entries[0].path:
            raise DamagedError(
                f"{link}: points to {link.readlink()}, but by {CATALOG} it is {entries[0].path}; "
                f"mend it with `ln -sfn {entries[0].path} {shlex.quote(str(link))}`"
            )


def _checked_results(run: RunDirectory) -> list[Path]:
    """Check the scores of `dqn eval` and the recordings of a run, and return their paths."""
    scores = sorted(run.evaluations.glob("step_*.json"))
    recordings = sorted(run.videos.glob("step_*.json"))
    try:
        for path in scores:
            check_score(path)
        for path in recordings:
            _check_recording(path)
    except DamagedError as error:
        raise DamagedError(f"{error}\nmove it away: the run itself is whole") from error
    return [*scores, *recordings]


def _check_recording(path: Path) -> None:
    """Read a recording; a file of its name that is none is damaged."""
    try:
        load_recording(path)
    except UserError as error:
        if isinstance(error.__cause__, OSError):  # it cannot be read, and may be whole
            raise
        raise DamagedError(str(error)) from error


def _check_summary(run: RunDirectory, manifests: dict[str, dict[str, Any]]) -> None:
    """Check the digest of the summary, unless the run is of an earlier version without one."""
    records = [manifest["bookkeeping"] for manifest in manifests.values()]
    if not records or not all("files" in record for record in records):
        return
    if not run.summary.exists():
        if records[-1]["finished"]:
            raise DamagedError(f"{run.summary}: missing; `{resume_command(run)}` writes it again")
        return
    try:
        summary = read_json(run.summary)
        if not isinstance(summary, dict) or sealed_summary(summary) != summary:
            raise DamagedError(f"{run.summary}: is not what was written; the file is damaged")
    except DamagedError as error:
        raise DamagedError(f"{error}\nremove it, and `{resume_command(run)}` writes it again") from error
