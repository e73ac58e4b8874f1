"""Sweeps of small runs of real games, killed at random moments, and what comes out in the end."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from killing import differences, outcome

from atari_dqn.run.leases.owner import start_time
from atari_dqn.run.sweep.folder import SweepFolder
from atari_dqn.run.sweep.status import SweepStatus

SPEC = Path(__file__).with_name("killed_atari.toml")
GAMES = ("pong", "breakout", "qbert", "seaquest")
METHODS = {"plain": [], "more": ["toggles.double=true", "toggles.n_step=3"]}
"""The methods of `write_sweep`, each with the keys that it sets."""
DQN = (sys.executable, "-m", "atari_dqn")
HEARTBEAT_SECONDS = 0.5
PATIENCE_SECONDS = 300.0
VICTIMS = ("runner", "training", "both")
"""What a kill ends: the command `dqn sweep`, the processes of one run, or both."""
RAY_VICTIMS = ("runner", "training", "worker", "raylet", "head")
"""What a kill ends on Ray: the command, a training, or a process of its cluster."""
_RAY_NAMES = {"worker": "ray::train_member", "raylet": "raylet", "head": "gcs_server"}
_OUTPUT = "command.txt"


def program(*words: str | Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run `dqn` in a folder, on one thread, to its end."""
    return subprocess.run(
        [*DQN, *map(str, words)],
        cwd=folder, capture_output=True, text=True, check=False, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip


def write_sweep(folder: Path, *, games: Sequence[str], seeds: int) -> Path:
    """Write a sweep file of two methods: Track A's, and Double DQN with three-step returns."""
    path = folder / "small.toml"
    path.write_text(
        f'spec = "{SPEC}"\ngame = {list(games)!r}\nseeds = {seeds}\n'
        "[methods.plain]\n[methods.more.toggles]\ndouble = true\nn_step = 3\n"
    )
    return path


def start(sweep: Path, folder: Path, *options: str) -> subprocess.Popen[bytes]:
    """Start `dqn sweep`; its output is appended to a file next to the folder."""
    words = ["sweep", str(sweep), "--plain", "--heartbeat", str(HEARTBEAT_SECONDS), *options]
    if sweep != folder:
        words += ["--folder", str(folder)]
    with folder.with_name(f"{folder.name}.{_OUTPUT}").open("ab") as output:
        return subprocess.Popen(
            [*DQN, *words],
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, "COLUMNS": "100"},
            cwd=folder.parent,
        )


def finish(sweep: Path, folder: Path, patience_seconds: float = PATIENCE_SECONDS) -> None:
    """Run a sweep to its end."""
    with start(sweep, folder) as process:
        try:
            code = process.wait(patience_seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    assert code == 0, folder.with_name(f"{folder.name}.{_OUTPUT}").read_text()


@dataclass(frozen=True)
class SweepKill:
    """A kill of a sweep: how long after the first training has started, and what is killed."""

    seconds: float
    victim: str


def random_sweep_kill(
    chance: random.Random, victims: Sequence[str] = VICTIMS, longest_seconds: float = 6.0
) -> SweepKill:
    return SweepKill(seconds=chance.uniform(0.0, longest_seconds), victim=chance.choice(victims))


def kill(process: subprocess.Popen[bytes], folder: Path, planned: SweepKill) -> bool:
    """Carry a kill out; return whether the sweep had not ended before."""
    until = time.monotonic() + PATIENCE_SECONDS
    while not trainings(folder) and process.poll() is None and time.monotonic() < until:
        time.sleep(0.02)
    time.sleep(planned.seconds)
    if process.poll() is not None:
        return False
    if planned.victim in _RAY_NAMES:
        return kill_of_ray(process, planned.victim)
    if planned.victim != "runner":
        for pid in trainings(folder)[:1]:
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
    if planned.victim != "training":
        process.kill()
        process.wait()
    return True


def kill_of_ray(process: subprocess.Popen[bytes], victim: str) -> bool:
    """Kill a process of the command's cluster; without raylet or head the command ends by itself."""
    found = [each for each in psutil.Process(process.pid).children(recursive=True) if is_ray(each, victim)]
    for each in found[:1]:
        each.kill()
    if found and victim != "worker":
        process.wait(PATIENCE_SECONDS)
    return bool(found)


def is_ray(process: psutil.Process, victim: str) -> bool:
    with suppress(psutil.Error):
        return process.name().startswith(_RAY_NAMES[victim])
    return False


def remains_of_ray(place: Path) -> list[str]:
    """Find processes of Ray that work in a folder, in which `start` has started the command."""
    found = []
    for each in psutil.process_iter(["name", "pid", "cwd", "status"]):
        is_here = each.info["cwd"] == str(place) and each.info["status"] != psutil.STATUS_ZOMBIE
        if is_here and each.info["name"].startswith(("ray::", "raylet", "gcs_server")):
            found.append(f"{each.info['name']} {each.info['pid']}")
    return found


def trainings(folder: Path) -> list[int]:
    """Return the process ids of the trainings that run now."""
    leases = SweepFolder(folder).leases.current().values() if folder.is_dir() else ()
    return [each.process for each in leases if each.process and start_time(each.process) is not None]


def outcomes(folder: Path) -> dict[str, dict[str, Any]]:
    """Return all that must be the same of each run."""
    status = SweepStatus(folder)
    return {member.name: outcome(folder / member.name) for member in status.record.members}


def all_differences(found: Path, expected: dict[str, dict[str, Any]]) -> list[str]:
    """Return the names of what differs, run by run."""
    runs = outcomes(found)
    missing = [name for name in expected if name not in runs]
    return missing + [f"{name}: {each}" for name in runs for each in differences(runs[name], expected[name])]


def times_trained(folder: Path) -> dict[str, int]:
    """Return how often each run was begun, by its event log."""
    names = [member.name for member in SweepStatus(folder).record.members]
    return {name: (folder / name / "events.jsonl").read_text().count('"kind": "started"') for name in names}


def processes_of(folder: Path) -> list[str]:
    """Return the command lines of processes that name the folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            words = path.read_bytes().decode(errors="replace").replace("\0", " ")
            if str(folder) in words:
                found.append(words)
    return found


@contextmanager
def stopped(*groups: int) -> Iterator[None]:
    """Stop processes for a block."""
    for group in groups:
        os.kill(group, signal.SIGSTOP)
    try:
        yield
    finally:
        for group in groups:
            with suppress(ProcessLookupError):
                os.kill(group, signal.SIGCONT)
