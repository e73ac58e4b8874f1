"""Killing runs at random moments and inside a checkpoint's write, and comparing what comes out in the end."""

from __future__ import annotations

import json
import os
import random
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from atari_dqn.checkpoint.store import CheckpointStore, read_manifest
from atari_dqn.run import RunDirectory
from atari_dqn.verify.checks import check_run
from atari_dqn.verify.replay import REPEATED

SPEC = Path(__file__).with_name("killed_atari.toml")
ZYGOTE = Path(__file__).with_name("zygote.py")
DQN = (sys.executable, "-c", "from atari_dqn.cli import main; main()")
POINTS = (
    "atari_dqn.checkpoint.row_saver:write_segment",
    "atari_dqn.checkpoint.row_saver:share_segment",
    "atari_dqn.checkpoint.stages:write_rest",
    "atari_dqn.checkpoint.stages:write_manifest",
    "atari_dqn.checkpoint.stages:flush",
    "atari_dqn.checkpoint.stages:put_in_place",
    "atari_dqn.checkpoint.stages:fsync_directory",
    "atari_dqn.checkpoint.stages:enter",
    "atari_dqn.checkpoint.stages:point",
    "atari_dqn.checkpoint.stages:prune",
)
"""Where a checkpoint's write is cut: each begins one of its stages."""
ONE_THREAD = {"OMP_NUM_THREADS": "1"}
PATIENCE_SECONDS = 300.0


@dataclass(frozen=True)
class Case:
    """What is run."""

    game: str
    track: str
    lanes: int
    workers: int

    @property
    def overrides(self) -> list[str]:
        return [
            f"game={self.game}",
            f"track={self.track}",
            f"env.lanes={self.lanes}",
            f"system.workers={self.workers}",
        ]


@dataclass(frozen=True)
class Kill:
    """When a process is killed: after some seconds, or at a call of a function in a checkpoint's write."""

    seconds: float | None = None
    point: str = ""
    call: int = 0


def random_kill(chance: random.Random, *, longest_seconds: float) -> Kill:
    if chance.random() < 0.5:
        return Kill(seconds=chance.uniform(0.1, longest_seconds))
    return Kill(point=chance.choice(POINTS), call=chance.randint(1, 3))


class Zygote:
    """Forks a training process for each run; use `with`."""

    def __enter__(self) -> Zygote:
        self._process = subprocess.Popen(
            [sys.executable, str(ZYGOTE)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **ONE_THREAD},
        )
        assert self._answer() == "ready"
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(PATIENCE_SECONDS)

    def run(self, case: Case, run_dir: Path, kill: Kill | None = None) -> bool:
        """Begin or go on with a run; return whether it was killed. `RuntimeError` if it failed by itself."""
        kill = kill or Kill()
        order = {"spec": str(SPEC), "overrides": case.overrides, "run_dir": str(run_dir)}
        assert self._process.stdin is not None
        line = json.dumps({**order, "point": kill.point, "call": kill.call})
        self._process.stdin.write(line.encode() + b"\n")
        self._process.stdin.flush()
        group = int(self._answer())
        if kill.seconds is not None and not self._ready(kill.seconds):
            os.killpg(group, signal.SIGKILL)
        return was_killed(os.waitstatus_to_exitcode(int(self._answer())))

    def _ready(self, seconds: float) -> bool:
        return bool(select.select([self._process.stdout], [], [], seconds)[0])

    def _answer(self) -> str:
        """Return a line, read byte by byte: `select` must see what is not read yet."""
        assert self._process.stdout is not None
        assert self._ready(PATIENCE_SECONDS), "no answer"
        line = b""
        while not line.endswith(b"\n"):
            byte = os.read(self._process.stdout.fileno(), 1)
            assert byte, "the zygote is dead"
            line += byte
        return line.decode().strip()


def run_command(case: Case, run_dir: Path, kill: Kill | None = None) -> bool:
    """Begin or go on with a run through the program itself; return whether it was killed."""
    options = [word for override in case.overrides for word in ("--set", override)]
    begun = (run_dir / "spec.toml").exists()
    words = ["resume", str(run_dir)] if begun else ["train", str(SPEC), "--run-dir", str(run_dir), *options]
    process = subprocess.Popen(
        [*DQN, *words, "--plain"],
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        env={**os.environ, **ONE_THREAD},
    )
    try:
        code = process.wait(kill.seconds if kill else PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        code = process.wait()
    return was_killed(code)


def was_killed(exit_code: int) -> bool:
    if exit_code not in (0, -signal.SIGKILL):
        raise RuntimeError(f"the run ended by itself with exit code {exit_code}")
    return exit_code != 0


@dataclass
class Story:
    """How a run fared."""

    kills: list[Kill] = field(default_factory=list)
    finished: bool = False


def killed_over_and_over(zygote: Zygote, case: Case, run_dir: Path, kills: Sequence[Kill]) -> Story:
    """Run a case to its end, killed as often as it lasts; then let it finish."""
    story = Story()
    for kill in kills:
        if not zygote.run(case, run_dir, kill):
            break
        story.kills.append(kill)
    else:
        zygote.run(case, run_dir)
    return story


def outcome(path: Path) -> dict[str, Any]:
    """Return all that must be the same, by name: files, state, evaluations, gates, what is kept."""
    run = RunDirectory.open(path)
    check_run(run)
    store = CheckpointStore(run.checkpoints)
    summary = json.loads(run.summary.read_text())
    latest = read_manifest(store.latest())
    return {
        **{f"{name}.csv": (path / f"{name}.csv").read_bytes() for name in REPEATED},
        **{f"summary.{key}": value for key, value in summary.items() if key not in TIMED},
        "state digest": latest["state_digest"],
        "evaluations": list(dict.fromkeys(_evaluations(run))),
        "scores": latest["bookkeeping"]["scores"],
        "gates": {
            name: state
            for name, state in latest["bookkeeping"]["watch"].items()
            if name not in ("throughput", "disk")
        },
        "kept": [(entry.step, entry.path, entry.eval_score, entry.tag) for entry in store.catalog()],
        "names": sorted(entry.name for entry in store.folder.iterdir()),
    }


TIMED = ("elapsed_seconds", "summary_sha256")


def _evaluations(run: RunDirectory) -> Iterator[str]:
    for line in run.events.read_text().splitlines():
        event = json.loads(line)
        if event["kind"] == "evaluation":
            yield json.dumps([event["step"], event["message"], event["data"]])


def differences(found: dict[str, Any], expected: dict[str, Any]) -> list[str]:
    """Return the names of what differs."""
    names = [*expected, *(name for name in found if name not in expected)]
    return [name for name in names if found.get(name) != expected.get(name)]


def seconds_of(zygote: Zygote, case: Case, run_dir: Path) -> float:
    """Return how long a case takes when nothing kills it."""
    began = time.monotonic()
    assert not zygote.run(case, run_dir)
    return time.monotonic() - began
