"""The paths of a sweep's folder.

FOLDER/NAME/              a run directory, as `dqn train` makes it
FOLDER/sweep/record.json  the members of the sweep with their complete specs
FOLDER/sweep/leases/      who works on which run
FOLDER/sweep/commands/    a lease of the command for each run that it has trained on a cluster
FOLDER/sweep/specs/NAME/  the spec from which the run was begun
FOLDER/sweep/output/      the output of each run's commands
FOLDER/sweep/failures/    why a run is not tried again
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from atari_dqn.files.atomic import exists, is_file
from atari_dqn.files.permission import is_closed
from atari_dqn.machine.hardware import allocated_bytes
from atari_dqn.run.checkpoint.names import named_step
from atari_dqn.run.directory import RunDirectory
from atari_dqn.run.folder_kinds import SWEEP_RECORD
from atari_dqn.run.leases.lease import LeaseFolder

OWN_FOLDER = "sweep"
"""Name of the folder of the sweep's own files."""


@dataclass(frozen=True)
class SweepFolder:
    """A folder with the runs of a sweep."""

    path: Path

    @property
    def own(self) -> Path:
        """The folder of the sweep's own files, next to its runs."""
        return self.path / OWN_FOLDER

    @property
    def record(self) -> Path:
        """The record of the members."""
        return self.path / SWEEP_RECORD

    @property
    def record_lock(self) -> Path:
        """The file that is locked while the record is replaced."""
        return self.own / ".lock"

    @property
    def leases(self) -> LeaseFolder:
        """The leases of the runs."""
        return LeaseFolder(self.own / "leases")

    @property
    def commands(self) -> LeaseFolder:
        """The leases of commands, one for each run on a cluster, which stops without it."""
        return LeaseFolder(self.own / "commands")

    @property
    def failures(self) -> Path:
        """The folder of the files that say why members are not tried again."""
        return self.own / "failures"

    def run(self, name: str) -> RunDirectory:
        """Return the run directory of a member, which may not exist yet."""
        return RunDirectory(self.path / name)

    def spec(self, name: str, method: str) -> Path:
        """Return the file of the spec from which a member is begun; a run is called after its file."""
        return self.own / "specs" / name / f"{method}.toml"

    def output(self, name: str) -> Path:
        """Return the file with the output of a member's commands."""
        return self.own / "output" / f"{name}.txt"

    def failure(self, name: str) -> Path:
        """Return the file that says why a member is not tried again."""
        return self.failures / f"{name}.json"

    def has_begun(self, name: str) -> bool:
        """Return whether the run directory of a member exists."""
        return exists(self.path / name)

    def has_finished(self, name: str) -> bool:
        """Return whether the run of a member has been completed, and its spec is there to read it by."""
        run = self.run(name)
        return is_file(run.summary) and is_file(run.spec)

    def newest_checkpoint(self, name: str) -> str:
        """Return the name of the newest checkpoint of a member, from which it would resume.

        It is empty if there is none, or if the run may not be read.
        """
        run = self.run(name)
        names = () if is_closed(run.path) else (path.name for path in run.checkpoints.glob("step_*"))
        return max(names, key=named_step, default="")

    def progress(self, name: str) -> tuple[str, int]:
        """Return the newest checkpoint and the bytes of the games of an evaluation that have been played.

        A training that ends and has changed neither has achieved nothing.
        """
        games = self.run(name).evaluation_progress
        return self.newest_checkpoint(name), games.stat().st_size if is_file(games) else 0

    def written_bytes(self, name: str) -> int:
        """Compute the disk space of the checkpoints of a member, 0 before it begins."""
        return allocated_bytes(self.run(name).checkpoints)

    def create(self) -> None:
        """Create the sweep's own folders."""
        for folder in ("leases", "commands", "specs", "output", "failures"):
            (self.own / folder).mkdir(parents=True, exist_ok=True)


def is_sweep(path: Path) -> bool:
    """Return whether a folder holds a sweep."""
    return is_file(SweepFolder(path).record)
