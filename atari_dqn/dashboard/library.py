"""The runs below a root folder: their description, or the reason why they cannot be read."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from atari_dqn.files.permission import is_closed
from atari_dqn.formatting import printable
from atari_dqn.run.directory import is_run
from atari_dqn.run.folders import folders_below
from atari_dqn.run.sweep.folder import is_sweep
from atari_dqn.run.sweep.status import SweepStatus
from atari_dqn.run.tailing.isolation import Unreadable, attempt
from atari_dqn.run.tailing.status import RunStatus, TailedRun, last_written
from atari_dqn.spec.game_name import game_name
from atari_dqn.spec.keys import Scalar


@dataclass(frozen=True, kw_only=True)
class RunEntry:
    """A run below the root."""

    name: str
    """Its path from the root, without control characters."""
    path: Path
    status: RunStatus | None = None
    """Its present state; None if it cannot be read."""
    values: Mapping[str, Scalar] = field(default_factory=dict)
    """The complete spec, by dotted key."""
    track_label: str = "?"
    deviations: tuple[str, ...] = ()
    unreadable: str = ""
    """The reason why it cannot be read; empty if it can."""

    @property
    def fault(self) -> str:
        """Description of what cannot be read: the run, or some lines of its files; empty if all can."""
        return self.unreadable or (self.status.fault if self.status else "")

    @property
    def game(self) -> str:
        """The game, `?` if the spec has none. If frames flicker it is another game."""
        return game_name(self.values)

    @property
    def seed(self) -> int:
        """The seed, -1 if the spec has none."""
        seed = self.values.get("seed", -1)
        return seed if isinstance(seed, int) else -1

    @property
    def method(self) -> tuple[tuple[str, Scalar], ...]:
        """All values of the spec except the seed; runs with the same method differ in their seed alone."""
        return tuple(sorted((key, value) for key, value in self.values.items() if key != "seed"))

    @property
    def written(self) -> float:
        """Time stamp of the last write to a table or the events; −∞ without any."""
        return last_written(self.path)


class Library:
    """Find the runs below `root`, which may itself be a link."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self._runs: dict[Path, TailedRun] = {}
        """Runs by path. All pages share the status of a run, which reads only new lines."""
        self._sweeps: dict[Path, SweepStatus] = {}

    def runs(self) -> list[RunEntry]:
        """List all runs, readable or not, the most recently written first."""
        return sorted(self._entries(), key=lambda run: (-run.written, run.name))

    def readable(self) -> list[RunEntry]:
        """List the readable runs."""
        return [run for run in self.runs() if not run.unreadable]

    def sweeps(self) -> dict[str, SweepStatus | Unreadable]:
        """Return the status of each sweep by its path below the root, or why it is unreadable.

        A sweep that is the root itself has the root's name.
        """
        folders = [
            folder for folder, _ in self._folders() if not self._leads_out(folder) and is_sweep(folder)
        ]
        return {
            printable(self.root.name if folder == self.root else self.relative(folder)): attempt(
                partial(self._sweep, folder)
            )
            for folder in sorted(folders)
        }

    def _sweep(self, folder: Path) -> SweepStatus:
        """Read the status of a sweep."""
        known = self._sweeps.get(folder)
        if known is None:
            known = self._sweeps[folder] = SweepStatus(folder)
        known.refresh()
        return known

    def inside(self, relative: str) -> Path | None:
        """Resolve a path relative to the root, with its links; None if it is outside the root or no file."""
        try:
            relative.encode()  # names that are not UTF-8 have no address
            path = (self.root / relative).resolve()
            return path if path.is_relative_to(self.root) and path.is_file() else None
        except (OSError, ValueError, RuntimeError):  # unreadable, a NUL in it, links in a circle
            return None

    def relative(self, path: Path) -> str:
        """Convert a path to the form relative to the root that `inside` expects."""
        return path.relative_to(self.root).as_posix()

    def _entries(self) -> Iterator[RunEntry]:
        if not self.root.is_dir():
            yield self._unreadable(self.root, f"{self.root} is not there any more")
        for folder, level in self._folders():
            if self._leads_out(folder):
                yield self._unreadable(folder, "a link that leads out of the root; it is not followed")
            elif is_closed(folder):
                yield self._unreadable(folder, "permission denied")
            elif level and is_run(folder):
                yield self._entry(folder)

    def _folders(self) -> Iterator[tuple[Path, int]]:
        """Yield folders with their levels; links that lead out of the root are not entered."""
        return folders_below(self.root, is_entered=lambda folder: not self._leads_out(folder))

    def _leads_out(self, folder: Path) -> bool:
        return folder.is_symlink() and not Path(os.path.realpath(folder)).is_relative_to(self.root)

    def _entry(self, folder: Path) -> RunEntry:
        status = self._runs.setdefault(folder, TailedRun(folder)).refresh()
        if isinstance(status, Unreadable):
            return self._unreadable(folder, status.reason)
        identity = status.identity
        return RunEntry(
            name=printable(self.relative(folder)),
            path=folder,
            status=status,
            values=identity.values,
            track_label=identity.track_label,
            deviations=identity.deviations,
        )

    def _unreadable(self, folder: Path, reason: str) -> RunEntry:
        return RunEntry(name=printable(self.relative(folder)), path=folder, unreadable=reason)


def toggles_on(values: Mapping[str, Scalar]) -> list[str]:
    """List the toggles of a spec that differ from plain DQN."""
    named = {
        key.removeprefix("toggles."): value for key, value in values.items() if key.startswith("toggles.")
    }
    return [
        name if value is True else f"{name} = {value}"
        for name, value in named.items()
        if value is True or value not in (False, 1, "none", "off")
    ]
