"""The run directory: the paths of its files, its creation, locking and integrity checks."""

from __future__ import annotations

import hashlib
import os
import shlex
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from atari_dqn.errors import DamagedError, UserError
from atari_dqn.files.atomic import (
    exists,
    fsync_directory,
    fsync_file,
    is_file,
    json_document,
    sha256_of_beginning,
    write_durably,
)
from atari_dqn.files.documents import check_types, read_json, read_run_file, reading_of_run
from atari_dqn.files.failures import reading, writing
from atari_dqn.files.new_files import refuse_leading_hyphen
from atari_dqn.files.permission import refuse_closed
from atari_dqn.files.whole_directory import whole_directory
from atari_dqn.run.archive.archive import is_archive_file, is_imported
from atari_dqn.run.checkpoint.names import CHECKPOINTS, is_named_as_checkpoint, refuse_missing_manifest
from atari_dqn.run.folder_kinds import HUB_ARCHIVE, what_it_is
from atari_dqn.run.lock import locked, locked_for_reading
from atari_dqn.run.provenance import Provenance
from atari_dqn.telemetry.columns import TABLES

_SPEC = "spec.toml"
_PROVENANCE = "provenance.json"


def default_run_dir(name: str, seed: int, root: Path = Path("outputs")) -> Path:
    """Return the default directory of a run."""
    return root / f"{name}_seed{seed}"


@dataclass(frozen=True)
class RunDirectory:
    """A run on disk. `create` and `open` ensure that its spec exists and is unchanged."""

    path: Path

    @classmethod
    def create(
        cls, path: Path, spec_toml: str, spec_digest: str, provenance: Mapping[str, Any]
    ) -> RunDirectory:
        """Create the directory of a new run atomically.

        `spec_digest`: the digest of all keys that can change results; the SHA-256 of spec.toml is recorded
        too. Raise `UserError` if the path exists or cannot be written; an existing path is not changed.
        """
        refuse_existing(path)
        files = _new_files(spec_toml.encode(), spec_digest, provenance)
        with writing(path), whole_directory(path, holds=(*files, CHECKPOINTS)) as partial:
            for name, data in files.items():
                write_durably(partial / name, data)
            (partial / CHECKPOINTS).mkdir()
        return cls(path)

    @classmethod
    def open(cls, path: Path) -> RunDirectory:
        """Open the directory of an existing run.

        Raise `UserError` if it is not a run directory, `DamagedError` if a file is missing or the spec was
        changed.
        """
        run = cls(path)
        _check_is_run(path)
        recorded = run.read_provenance().get("spec", {}).get("toml_sha256")
        found = hashlib.sha256(read_run_file(run.spec)).hexdigest()
        if found != recorded:
            raise DamagedError(
                f"{run.spec}: was changed after the run began: its SHA-256 is {found}, "
                f"{_PROVENANCE} recorded {recorded}; restore the file, or start a new run from it"
            )
        return run

    @property
    def spec(self) -> Path:
        """The resolved spec, which never changes."""
        return self.path / _SPEC

    @property
    def provenance(self) -> Path:
        """The provenance of the run, which never changes."""
        return self.path / _PROVENANCE

    @property
    def tables(self) -> Path:
        """The folder of the CSV tables."""
        return self.path

    @property
    def events(self) -> Path:
        """The event log."""
        return self.path / "events.jsonl"

    @property
    def summary(self) -> Path:
        """The result of a finished run."""
        return self.path / "summary.json"

    @property
    def set_aside(self) -> Path:
        """The folder of damaged logs that were replaced by new ones."""
        return self.path / "set_aside"

    @property
    def diagnostics(self) -> Path:
        """The folder of the diagnostic bundles that are written when a gate halts the run."""
        return self.path / "diagnostics"

    @property
    def evaluations(self) -> Path:
        """The folder of the scores of `dqn eval`."""
        return self.path / "evaluations"

    @property
    def evaluation_progress(self) -> Path:
        """The finished games of the current evaluation during training."""
        return self.path / "evaluation_progress.jsonl"

    @property
    def videos(self) -> Path:
        """The folder of the videos and their recordings."""
        return self.path / "videos"

    @property
    def checkpoints(self) -> Path:
        """The folder of the checkpoints."""
        return self.path / CHECKPOINTS

    def file_records(self) -> dict[str, dict[str, Any]]:
        """Flush every file outside the checkpoints to disk, and return its length and SHA-256.

        Logs grow afterwards; their record covers the beginning.
        """
        records = {path.name: _file_record(path) for path in (*self._constant, *self._growing)}
        with writing(self.path):
            fsync_directory(self.path)  # otherwise a power failure may lose the names of new files
        return records

    def file_sizes(self) -> list[int]:
        """Return the sizes of the files outside the checkpoints that there are, in bytes."""
        return [path.stat().st_size for path in (*self._constant, *self._growing) if is_file(path)]

    def problems(self, records: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
        """Yield each file that does not match its record, with a description of the problem."""
        for name, record in records.items():
            path = self.path / name
            if not is_file(path):
                yield name, "missing"
                continue
            with reading_of_run(path):
                problem = self._problem(path, record)
            if problem:
                yield name, problem

    def is_log(self, name: str) -> bool:
        """Return whether a file is a log, that is a table or the event log."""
        return self.path / name in self._growing

    def _problem(self, path: Path, record: Mapping[str, Any]) -> str:
        """Describe how a file differs from its record; empty if it matches."""
        length, recorded = path.stat().st_size, record["bytes"]
        if path in self._growing and length < recorded:
            return f"has {length:,} bytes of {recorded:,} recorded; rows are lost"
        if path in self._constant and length != recorded:
            return "was changed after the run began; restore the file"
        if sha256_of_beginning(path, recorded) != record["sha256"]:
            return "is not what a checkpoint recorded; the file is damaged"
        return ""

    @property
    def _constant(self) -> tuple[Path, ...]:
        return (self.spec, self.provenance)

    @property
    def _growing(self) -> tuple[Path, ...]:
        return (*(self.tables / f"{name}.csv" for name in TABLES), self.events)

    def recorded(self, key: str) -> Any:
        """Return one entry of the provenance; raise `DamagedError` if it is missing."""
        provenance = self.read_provenance()
        if key not in provenance:
            raise DamagedError(f"{self.provenance}: {key!r} is missing")
        return provenance[key]

    def locked(self) -> AbstractContextManager[None]:
        """Lock the run for writing; raise `UserError` while another (living) process holds it."""
        return locked(self.path)

    def locked_for_reading(self) -> AbstractContextManager[None]:
        """Lock the run for reading, without writing a file; `UserError` while another process runs it."""
        return locked_for_reading(self.path)

    def read_provenance(self) -> dict[str, Any]:
        """Read the provenance of the run; raise `DamagedError` with the first invalid key."""
        data: dict[str, Any] = read_json(self.provenance)
        check_types(self.provenance, data, Provenance)
        return data


def _file_record(path: Path) -> dict[str, Any]:
    with writing(path):
        fsync_file(path)
    with reading(path):
        length = path.stat().st_size
        return {"bytes": length, "sha256": sha256_of_beginning(path, length)}


def refuse_existing(path: Path, *, where: str = "--run-dir") -> None:
    """Raise `UserError` if a path exists, or if a part of it is a file and it cannot be created.

    For a run directory the message has the command to resume it. `where`: the option or argument that names
    a directory.
    """
    refuse_leading_hyphen(path, where=where)
    if "\0" in str(path):
        raise UserError(
            f"run directory {str(path)!r}: a path cannot contain NUL; choose another name with {where}"
        )
    if os.path.lexists(path):  # even if it is a broken link
        remedy = f"name another directory with {where}"
        if exists(path / _SPEC) and exists(path / _PROVENANCE) and not is_imported(path):
            remedy = f"continue that run with `dqn resume {shlex.quote(str(path))}`, or {remedy}"
        raise UserError(f"run directory {path} exists and is never overwritten; {remedy}")
    for parent in path.parents:
        if is_file(parent):
            raise UserError(f"run directory {path}: {parent} is a file; name another directory with {where}")


def _new_files(spec: bytes, spec_digest: str, provenance: Mapping[str, Any]) -> dict[str, bytes]:
    digests = {"digest": spec_digest, "toml_sha256": hashlib.sha256(spec).hexdigest()}
    record = {**provenance, "spec": digests}
    return {_SPEC: spec, _PROVENANCE: json_document(record)}


def is_run(path: Path) -> bool:
    """Return whether a folder is a run directory, possibly damaged, by the files that only runs have."""
    return bool(_marks(path))


def _marks(path: Path) -> set[str]:
    """Return the files of a run that a folder has; none for a folder for a model hub."""
    found = {name for name in (_SPEC, _PROVENANCE, CHECKPOINTS) if exists(path / name)}
    return set() if found == {_SPEC} and exists(path / HUB_ARCHIVE) else found


def _check_is_run(path: Path) -> None:
    expected = "expected a directory created by `dqn train`"
    if "\0" in str(path) or not exists(path):
        raise UserError(f"run directory {str(path)!r}: not found; {expected}")
    if is_archive_file(path):
        raise UserError(
            f"{path} is an archive, without the state of its training; {expected}. `dqn eval`, `dqn record`, "
            "`dqn play`, `dqn export` and `dqn compare` take an archive, and `dqn import` unpacks it"
        )
    refuse_closed(path)
    present = _marks(path)
    if not present and is_named_as_checkpoint(path.resolve()):
        _refuse_checkpoint(path)
    if not present:
        not_a_run = f"{path} is not a run directory: it contains no {_SPEC}; {expected}"
        raise UserError(what_it_is(path) or not_a_run)
    missing = sorted({_SPEC, _PROVENANCE} - present)
    if missing:
        raise DamagedError(
            f"run directory {path}: {' and '.join(missing)} missing; restore it from a copy of the run"
        )


def _refuse_checkpoint(path: Path) -> NoReturn:
    refuse_missing_manifest(path)
    checkpoint = path.resolve()
    raise UserError(
        f"{path} is a checkpoint; expected its run: {checkpoint.parent.parent}\n"
        f"`dqn resume` and `dqn verify` start from a checkpoint with --checkpoint {checkpoint.name}"
    )
