"""Take, renew, steal and release the leases of runs: files, one for each run that a process works on.

    leases/pong_seed1.3.lease   000000000042 0000004711 00000000000000012345
                                {"name": "pong_seed1", "generation": 3, "token": …, "owner": {"host": …,
                                 "machine": …, "pid": …, "started": …}, "period_seconds": 5.0, "cores": […]}

The first line holds the heartbeat counter, and the process id and start time of the training. The owner
overwrites it in place through an open descriptor: once the file has been removed, it can no longer change the
lease of another owner. A lease is created by linking a complete file to its name, which fails if the name
exists, so that one process wins. A stale lease of generation g is stolen by creating generation g + 1: from
then on generation g is lost, and its file is removed. The protocol needs no clock that hosts share.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from atari_dqn.errors import UserError
from atari_dqn.files.atomic import read_regular
from atari_dqn.files.failures import writing
from atari_dqn.run.leases.owner import Owner

PERIOD_SECONDS = 5.0
"""Time between two heartbeats of an owner."""
STALE_HEARTBEATS = 3
"""A lease is stale when its counter has stood for so many periods on the observer's monotonic clock."""

_FILE = re.compile(r"(?P<name>.+)\.(?P<generation>\d{1,9})\.lease")
_HEADER = "{:012d} {:010d} {:020d}\n"
_MOST_BYTES = 2**16
_READ_TRIES = 5
_READ_PAUSE_SECONDS = 0.2


@dataclass(frozen=True, kw_only=True)
class Lease:
    """The right of an owner to write to a run."""

    name: str
    """The run's name."""
    generation: int
    token: str
    """Random, so that no two leases are mistaken for each other."""
    owner: Owner
    period_seconds: float
    """Time between two heartbeats."""
    cores: tuple[int, ...] = ()
    """The cores of the owner's machine that the run uses."""
    heartbeat: int = 0
    process: int = 0
    """Process id of the training on the owner's machine, which leads a process group; 0 before it starts."""
    process_started: int = 0

    @property
    def file_name(self) -> str:
        """The name of the lease's file."""
        return f"{self.name}.{self.generation}.lease"

    def to_bytes(self) -> bytes:
        """Serialize the lease."""
        values = asdict(self)
        header = [values.pop(key) for key in ("heartbeat", "process", "process_started")]
        return (_HEADER.format(*header) + json.dumps(values)).encode()


class _Content(msgspec.Struct):
    """Types of the JSON of a lease."""

    token: str
    owner: Owner
    period_seconds: float
    cores: tuple[int, ...]


def read_lease(path: Path) -> Lease | None:
    """Read a lease; None if the file has been removed, is not a lease or cannot be read."""
    match = _FILE.fullmatch(path.name)
    try:
        header, _, content = read_regular(path, most_bytes=_MOST_BYTES).partition(b"\n")
        heartbeat, process, process_started = map(int, header.split())
        found = msgspec.json.decode(content, type=_Content)
    except (OSError, ValueError):
        return None
    assert match is not None, "the caller lists leases by their names"
    return Lease(
        name=match["name"],
        generation=int(match["generation"]),
        heartbeat=heartbeat,
        process=process,
        process_started=process_started,
        **{field: getattr(found, field) for field in _Content.__struct_fields__},
    )


class HeldLease:
    """A lease of this process."""

    def __init__(self, folder: Path, lease: Lease, descriptor: int) -> None:
        self._folder, self._descriptor = folder, descriptor
        self.lease = lease

    @property
    def path(self) -> Path:
        """The file of the lease."""
        return self._folder / self.lease.file_name

    def beat(self) -> bool:
        """Advance the heartbeat; return False if another process has taken the run over.

        A heartbeat that cannot be written is missed: after some of them in a row the lease is stale.
        """
        if not self.is_held():
            return False
        self._update(heartbeat=self.lease.heartbeat + 1)
        return True

    def set_process(self, pid: int, started: int) -> None:
        """Record the process that trains the run, at once or with a later heartbeat; 0 if it has ended."""
        self._update(process=pid, process_started=started)

    def is_held(self) -> bool:
        """Return whether this process still holds the lease."""
        return holds(self.path, self.lease.token)

    def release(self) -> None:
        """Give the lease up; remove its file and those of earlier generations. May be called twice."""
        if self.is_held():  # else files of these names may be of others, who began again with generation 1
            for generation in range(1, self.lease.generation + 1):
                (self._folder / replace(self.lease, generation=generation).file_name).unlink(missing_ok=True)
        self.close()

    def close(self) -> None:
        """Close the file without giving the lease up, for example because it was lost."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def _update(self, **values: Any) -> None:
        self.lease = replace(self.lease, **values)
        header = _HEADER.format(self.lease.heartbeat, self.lease.process, self.lease.process_started)
        with suppress(OSError):
            os.pwrite(self._descriptor, header.encode(), 0)
            os.fsync(self._descriptor)  # a network file system sends it to other hosts only then


def holds(path: Path, token: str) -> bool:
    """Return whether the lease in a file is still the one with this token, and the newest of its run.

    A file that is there but cannot be read, as when a disk fails for a moment, is read again for a second.
    """
    found = _read_patiently(path)
    if found is None or found.token != token:
        return False
    return not os.path.lexists(path.with_name(replace(found, generation=found.generation + 1).file_name))


def _read_patiently(path: Path) -> Lease | None:
    """Read a lease, for a second if need be; None if the file is gone, or is no lease."""
    for _ in range(_READ_TRIES):
        if (found := read_lease(path)) is not None or is_gone(path):
            return found
        time.sleep(_READ_PAUSE_SECONDS)
    return None


def _check_is_lease(path: Path) -> None:
    """Raise `UserError` if a file is there and is no lease, as a crash of its machine can leave it."""
    if _read_patiently(path) is None and not is_gone(path):
        raise UserError(f"{path}: cannot be read as a lease; if no process trains the run, remove the file")


def is_gone(path: Path) -> bool:
    """Return whether a file has been removed; False if that cannot be said."""
    try:
        os.lstat(path)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return False


class LeaseFolder:
    """The leases of a sweep."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def current(self) -> dict[str, Lease]:
        """Return the newest lease of each run that has one."""
        found: dict[str, Lease] = {}
        for path in self._files():
            lease = read_lease(path)
            if lease is not None and lease.generation > (
                found[lease.name].generation if lease.name in found else 0
            ):
                found[lease.name] = lease
        return found

    def has_file(self, name: str) -> bool:
        """Return whether a run has a lease, even one that cannot be read now; `OSError` if the disk fails."""
        return bool(self._generations(name))

    def take(
        self,
        name: str,
        owner: Owner,
        *,
        over: Lease | None = None,
        period_seconds: float = PERIOD_SECONDS,
        cores: Sequence[int] = (),
    ) -> HeldLease | None:
        """Take the lease of a run; None if another process has been quicker.

        `over`: the stale lease that is stolen, exactly as it was last observed; None if the run had none.
        `UserError` if a file that is no lease has its name.
        """
        lease = Lease(
            name=name,
            generation=1 if over is None else over.generation + 1,
            token=secrets.token_hex(16),
            owner=owner,
            period_seconds=period_seconds,
            cores=tuple(cores),
        )
        descriptor = self._create(lease)
        if descriptor is None:
            _check_is_lease(self.path / lease.file_name)
            return None
        held = HeldLease(self.path, lease, descriptor)
        # Since the observation the earlier lease may have been renewed, released or stolen.
        if self._follows(lease, over):
            for generation in self._generations(name):
                if generation < lease.generation:
                    (self.path / replace(lease, generation=generation).file_name).unlink(missing_ok=True)
            return held
        held.path.unlink(missing_ok=True)
        held.close()
        return None

    def _create(self, lease: Lease) -> int | None:
        """Create the file of a lease and return a descriptor of it; None if its name is taken."""
        partial, final = self.path / f".{lease.token}.partial", self.path / lease.file_name
        with writing(final):
            descriptor = os.open(partial, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
            try:
                os.write(descriptor, lease.to_bytes())
                os.fsync(descriptor)
                is_ours = _link(descriptor, partial, final)
            except BaseException:
                os.close(descriptor)
                raise
            finally:
                partial.unlink(missing_ok=True)
        if not is_ours:
            os.close(descriptor)
        return descriptor if is_ours else None

    def _follows(self, lease: Lease, over: Lease | None) -> bool:
        """Return whether a created lease is the newest, and follows an earlier one that did not change."""
        if max(self._generations(lease.name), default=0) != lease.generation:
            return False
        return over is None or read_lease(self.path / over.file_name) == over

    def _generations(self, name: str) -> set[int]:
        matches = (_FILE.fullmatch(path.name) for path in self._files())
        return {int(match["generation"]) for match in matches if match and match["name"] == name}

    def _files(self) -> Iterator[Path]:
        with suppress(FileNotFoundError), os.scandir(self.path) as entries:
            for entry in entries:
                if _FILE.fullmatch(entry.name):
                    yield Path(entry.path)


def _link(descriptor: int, partial: Path, final: Path) -> bool:
    """Give the file of a descriptor its final name; return False if another file has it."""
    try:
        os.link(partial, final)
    except FileExistsError:
        # a network file system may report its own success as a conflict, if the first answer was lost
        return os.fstat(descriptor).st_nlink == 2
    return True
