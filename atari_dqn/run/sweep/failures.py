"""Record why a run of a sweep is not tried again, and what the user can do about it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from atari_dqn.errors import DamagedError, HaltedError, InfrastructureError, UserError
from atari_dqn.files.atomic import exists, write_json_atomically
from atari_dqn.files.documents import checked, read_json
from atari_dqn.formatting import printable
from atari_dqn.run.directory import RunDirectory

FailureKind = Literal["invalid", "halted", "damaged", "crashed"]
KIND_OF_EXIT: dict[int, FailureKind] = {2: "invalid", 3: "halted", 4: "damaged"}
"""Exit codes of a training that do not change if it is tried again."""
ERRORS: Mapping[FailureKind, type[Exception]] = {
    "damaged": DamagedError,
    "halted": HaltedError,
    "crashed": InfrastructureError,
    "invalid": UserError,
}
"""The error with which a command over many runs reports a failure, the worst first."""


class Failure(msgspec.Struct, frozen=True):
    """The end of a run that is not tried again until the user requests it."""

    kind: FailureKind
    reason: str
    """The last error of the run, on one line."""
    exit_code: int

    def remedy(self, run: Path) -> str:
        """Describe the steps that the user can take."""
        resume = f"`dqn resume {shlex.quote(str(run))}`"
        match self.kind:
            case "halted":
                if not exists(RunDirectory(run).checkpoints / "latest"):
                    remedy = "no checkpoint was saved: change its keys in the sweep file, then it begins anew"
                else:
                    again = "halts again unless the cause was outside the run"
                    remedy = f"{resume} goes on from its last checkpoint, and {again}"
                return f"{run / 'diagnostics'} says more; {remedy}"
            case "damaged":
                return f"`dqn verify {shlex.quote(str(run))}` names the damage; {resume} names the remedy"
            case "invalid":
                return "remove the cause; then --retry tries it again"
            case "crashed":
                return "it crashed several times without any progress; --retry tries it again"


@dataclass
class CrashCount:
    """Counts the crashes of a run in a row without any progress between them."""

    progress: tuple[str, int]
    """What `SweepFolder.progress` returned last."""
    count: int = 0

    def add(self, progress: tuple[str, int]) -> int:
        """Count a crash, after which the run has come so far; return the count."""
        self.count = self.count + 1 if progress == self.progress else 1
        self.progress = progress
        return self.count


def write_failure_record(path: Path, failure: Failure) -> None:
    """Write the failure of a run."""
    write_json_atomically(path, msgspec.to_builtins(failure))


def read_failures(folder: Path) -> dict[str, Failure]:
    """Read the failures of a sweep by run; a damaged file counts as a failure."""
    found = {path.stem: read_failure(path) for path in sorted(folder.glob("*.json"))}
    return {name: failure for name, failure in found.items() if failure is not None}


def read_failure(path: Path) -> Failure | None:
    """Read the failure of a run; None without a file, and a damaged file counts as a failure."""
    if not path.exists():
        return None
    try:
        found = checked(path, read_json(path), Failure)
    except DamagedError as error:
        return Failure(kind="damaged", reason=printable(str(error)), exit_code=4)
    return Failure(kind=found.kind, reason=printable(found.reason), exit_code=found.exit_code)
