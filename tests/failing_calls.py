"""Make a system call fail in runs of the toy game; check how the command ends, and the next resume."""

from __future__ import annotations

import errno
import json
import random
import re
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forked import CommandServer, Finished
from killing import differences, outcome

HERE = Path(__file__).parent
SPEC = HERE / "tiny_catch.toml"
SHORT_WRITE = -1
"""Value of `Fault.error` for a write that succeeds with half of its bytes."""

ERRORS: dict[str, tuple[int, ...]] = {
    "open": (errno.EIO, errno.EMFILE, errno.ENOSPC, errno.EINTR),
    "read": (errno.EIO, errno.EINTR),
    "write": (errno.EIO, errno.ENOSPC, errno.EINTR, SHORT_WRITE),
    "fsync": (errno.EIO, errno.ENOSPC, errno.EINTR),
    "truncate": (errno.EIO, errno.EINTR),
    "rename": (errno.EIO, errno.ENOSPC),
    "unlink": (errno.EIO,),
    "rmdir": (errno.EIO,),
    "mkdir": (errno.EIO, errno.ENOSPC),
    "symlink": (errno.EIO, errno.ENOSPC),
    "link": (errno.EIO, errno.EMLINK),
    "flock": (errno.EIO, errno.EINTR),
    "scan": (errno.EIO, errno.EMFILE),
    "stat": (errno.EIO,),
}
"""Each kind of call that `disk_faults.c` can make fail, and the errors that Linux documents for it."""


def build_library(folder: Path) -> Path:
    """Compile the library that makes system calls fail. `CalledProcessError` if this fails."""
    library = folder / "libdisk_faults.so"
    source = HERE / "disk_faults.c"
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", library, source, "-ldl", "-lpthread"], check=True)
    return library


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A failure with `error` of the nth call of a kind in a phase: `train` or `resume`."""

    phase: str
    kind: str
    nth: int
    error: int

    def __str__(self) -> str:
        name = "short" if self.error == SHORT_WRITE else errno.errorcode[self.error]
        return f"{self.phase}: {self.kind} {self.nth} {name}"


class Commands(CommandServer):
    """Runs `dqn` commands in forked processes whose system calls can be made to fail. Use with `with`."""

    def __init__(self, folder: Path) -> None:
        library = build_library(folder)
        super().__init__(folder, {"LD_PRELOAD": str(library), "DISK_FAULTS": "1"})

    def run(self, *words: object, **order: Any) -> Finished:
        """Run a command with a replay of small pieces. `order`: see command_server.py."""
        return super().run(*words, small_pieces=True, **order)


class FaultTrials:
    """Checks commands with a fault: their ending, and the resume after it, against a run without faults."""

    def __init__(self, commands: Commands, folder: Path) -> None:
        self.commands, self.folder = commands, folder
        self.expected = self._whole()
        self.halfway = folder / "halfway"
        self.words = {
            "train": ("train", str(SPEC), "--plain", "--run-dir"),
            "resume": ("resume", "--plain"),
        }
        self._make_halfway()

    def _whole(self) -> dict[str, Any]:
        path = self.folder / "whole"
        finished = self.commands.run("train", str(SPEC), "--plain", "--run-dir", str(path))
        assert finished.code == 0, finished.output
        return outcome(path)

    def _make_halfway(self) -> None:
        """Make a run that a full disk stopped in its second checkpoint; its resume cuts and removes files."""
        fault = Fault(phase="train", kind="rename", nth=self._renames() * 2 // 3, error=errno.ENOSPC)
        finished = self._command("train", self.halfway, fault)
        assert finished.code == 2, finished.output
        assert any((self.halfway / "checkpoints").glob("step_*"))

    def _renames(self) -> int:
        return self.counts("train")["rename"]

    def counts(self, phase: str) -> dict[str, int]:
        """Count the calls of each kind that a phase makes in its run directory."""
        counts = self.folder / "counts.json"
        with self._start(phase) as path:
            order = {"watch": str(path), "counts": str(counts), "kinds": list(ERRORS)}
            finished = self.commands.run(*self.words_for(phase, path), **order)
        assert finished.code == 0, finished.output
        loaded: dict[str, int] = json.loads(counts.read_text())
        return loaded

    def words_for(self, phase: str, path: Path) -> tuple[str, ...]:
        return (*self.words[phase], str(path))

    @contextmanager
    def _start(self, phase: str) -> Iterator[Path]:
        """Yield the path of a run in its state before a phase; remove it afterwards."""
        path = self.folder / "run"
        if phase == "resume":
            subprocess.run(["cp", "-a", str(self.halfway), str(path)], check=True)
        try:
            yield path
        finally:
            subprocess.run(["rm", "-rf", str(path)], check=True)

    def _command(self, phase: str, path: Path, fault: Fault) -> Finished:
        report = self.folder / "report.txt"
        armed = (fault.kind, fault.nth, fault.error, str(report))
        return self.commands.run(*self.words_for(phase, path), watch=str(path), fault=armed)

    def complaints(self, fault: Fault) -> list[str]:
        """Run a phase with a fault, then resume; return what is wrong with the ending or the resume."""
        with self._start(fault.phase) as path:
            finished = self._command(fault.phase, path, fault)
            report = self.folder / "report.txt"
            failed_path = report.read_text().strip() if report.exists() else ""
            found = list(_wrong_ending(finished, failed_path, path))
            found += self._wrong_afterwards(path, completed=finished.code == 0)
        return found

    def _wrong_afterwards(self, path: Path, *, completed: bool) -> Iterator[str]:
        """Resume the run unless it is completed; yield what is wrong with the resume and with the outcome."""
        if not completed:
            begun = (path / "spec.toml").exists()
            finished = self.commands.run(*self.words_for("resume" if begun else "train", path))
            if finished.code and "is complete at" not in finished.output:
                yield f"afterwards: exit {finished.code}: {finished.output[-600:]}"
                return
        if different := differences(outcome(path), self.expected):
            yield f"afterwards: {', '.join(different)} differ"


def _wrong_ending(finished: Finished, failed_path: str, path: Path) -> Iterator[str]:
    """Check a command's ending and yield each fault. `failed_path`: path of the failed call, if any."""
    if "Traceback" in finished.output:
        yield f"a traceback: {finished.output[-1500:]}"
    if finished.code not in (0, 2, 4, 5):
        yield f"exit {finished.code}: {finished.output[-600:]}"
    if finished.code and failed_path and not _names(finished.output, failed_path, path):
        yield f"a call on {failed_path} failed, but the output does not name it: {finished.output[-600:]}"


def _names(output: str, failed_path: str, run: Path) -> bool:
    """Return whether the output names the file whose call failed, or the checkpoint that contains it."""
    below = Path(failed_path).relative_to(run)
    final = [_final_name(part) for part in below.parts]
    if final[:1] == ["checkpoints"] and len(final) > 2:
        final = final[:2]
    wanted = str(run.joinpath(*final)) if final else str(run)
    return wanted in re.sub(r"\s*\n\s*", "", output) or wanted in output


def _final_name(part: str) -> str:
    """Return the name to which a temporary file is renamed; other names are returned unchanged."""
    found = re.fullmatch(r"\.(.+?)(\.[0-9a-f]{8})?\.partial", part)
    return found[1] if found else part


def some_faults(counts: dict[str, dict[str, int]], most: int, rng: random.Random) -> list[Fault]:
    """Sample at most `most` faults over all phases, kinds and errors, with every call of a rare kind."""
    by_kind = [
        [
            Fault(phase=phase, kind=kind, nth=nth, error=error)
            for nth in range(1, number + 1)
            for error in ERRORS[kind]
        ]
        for phase, numbers in counts.items()
        for kind, number in numbers.items()
    ]
    for faults in by_kind:
        rng.shuffle(faults)
    return list(_in_turn(by_kind))[:most]


def _in_turn(groups: Sequence[list[Fault]]) -> Iterator[Fault]:
    """Yield one fault of each group in turn until all groups are empty."""
    while any(groups):
        yield from (group.pop() for group in groups if group)
