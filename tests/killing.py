"""Killing runs at random moments and inside a checkpoint's write, and comparing what comes out in the end.

A run may be taken further in stages: its budget is raised once it is spent, and the kills go on.
"""

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
from itertools import islice
from pathlib import Path
from typing import Any

from atari_dqn.run.checkpoint.manifest import read_manifest
from atari_dqn.run.checkpoint.store import CheckpointStore
from atari_dqn.run.directory import RunDirectory
from atari_dqn.train.resumption import resume_point
from atari_dqn.verify.checks import check_run
from atari_dqn.verify.repetition import REPEATED

SPEC = Path(__file__).with_name("killed_atari.toml")
ZYGOTE = Path(__file__).with_name("zygote.py")
DQN = (sys.executable, "-c", "from atari_dqn.cli import main; main()")
POINTS = (
    "atari_dqn.run.checkpoint.row_saver:write_segment",
    "atari_dqn.run.checkpoint.row_saver:share_segment",
    "atari_dqn.run.checkpoint.stages:write_rest",
    "atari_dqn.run.checkpoint.stages:write_manifest",
    "atari_dqn.run.checkpoint.stages:flush",
    "atari_dqn.run.checkpoint.stages:put_in_place",
    "atari_dqn.run.checkpoint.stages:fsync_directory",
    "atari_dqn.run.checkpoint.stages:add_to_catalog",
    "atari_dqn.run.checkpoint.stages:update_links",
    "atari_dqn.run.checkpoint.stages:prune",
    "atari_dqn.run.checkpoint.removal:remove",
    "atari_dqn.run.checkpoint.store:replace_bookkeeping",
)
"""Where a checkpoint's write is cut: each begins one of its stages."""
RAISING_POINTS = (
    "atari_dqn.train.launch:_extend",
    "atari_dqn.train.session:Session.save",
    "atari_dqn.train.launch:schedules_that_ended",
)
"""Where the raising of a budget is cut: before it, before it is saved, and before it is reported."""
MOST_EVENTS = 15
"""Between two checkpoints there are about so many events: rows, evaluations, notices."""
ONE_THREAD = {"OMP_NUM_THREADS": "1"}
PATIENCE_SECONDS = 300.0
EVENT = b"."
"""What the child writes when something happens in its run."""


@dataclass(frozen=True)
class Case:
    """What is run, and to which budgets its own is raised, one after another."""

    game: str
    track: str
    envs: int
    workers: int
    raised_frames: tuple[int, ...] = ()
    further: tuple[str, ...] = ()
    """Further overrides of the spec."""

    @property
    def overrides(self) -> list[str]:
        return [
            f"game={self.game}",
            f"track={self.track}",
            f"env.num_envs={self.envs}",
            f"system.workers={self.workers}",
            *self.further,
        ]


@dataclass(frozen=True)
class Kill:
    """When a process is killed: some events into its run, and a moment later; or at a call of a function.

    Events and not seconds, so that a slow machine is killed at the same places as a fast one.
    """

    events: int = 0
    seconds_later: float = 0.0
    point: str = ""
    call: int = 0


def random_kill(chance: random.Random) -> Kill:
    """Return a kill at a random moment, or one in a checkpoint's write; each leaves most of the run to do."""
    if chance.random() < 0.5:
        return Kill(events=chance.randrange(MOST_EVENTS), seconds_later=chance.uniform(0.0, 0.1))
    return Kill(point=chance.choice(POINTS), call=chance.randint(1, 2))


def random_kill_of_a_raise(chance: random.Random) -> Kill:
    """Return a kill while a budget is being raised, or soon after."""
    if chance.random() < 0.5:
        return Kill(events=chance.randrange(4), seconds_later=chance.uniform(0.0, 0.05))
    return Kill(point=chance.choice(RAISING_POINTS), call=1)


class Zygote:
    """Forks a training process for each run; use `with`."""

    def __enter__(self) -> Zygote:
        self._process = subprocess.Popen(
            [sys.executable, str(ZYGOTE)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **ONE_THREAD},
        )
        self._pending = b""
        assert self._answer() == "ready"
        return self

    def __exit__(self, *_: object) -> None:
        with self._process:
            pass  # closes its pipes, which ends it, and waits

    def run(self, case: Case, run_dir: Path, kill: Kill | None = None, frames: int | None = None) -> bool:
        """Begin or go on with a run, to more frames if they are given; return whether it was killed.

        `RuntimeError` if it failed by itself.
        """
        kill = kill or Kill()
        order = {"spec": str(SPEC), "overrides": case.overrides, "run_dir": str(run_dir), "frames": frames}
        assert self._process.stdin is not None
        line = json.dumps({**order, "point": kill.point, "call": kill.call})
        self._process.stdin.write(line.encode() + b"\n")
        self._process.stdin.flush()
        group = int(self._answer())
        if not kill.point and kill.seconds_later and self._sees(kill.events):
            time.sleep(kill.seconds_later)
            os.killpg(group, signal.SIGKILL)
        return was_killed(os.waitstatus_to_exitcode(int(self._answer())))

    def _sees(self, events: int) -> bool:
        """Wait for so many events of the child; return whether it still runs then."""
        for _ in range(events):
            self._pending = self._byte()
            if self._pending != EVENT:
                return False
        return True

    def _byte(self) -> bytes:
        assert self._process.stdout is not None
        assert select.select([self._process.stdout], [], [], PATIENCE_SECONDS)[0], "no answer"
        byte = os.read(self._process.stdout.fileno(), 1)
        assert byte, "the zygote is dead"
        return byte

    def _answer(self) -> str:
        """Return a line, without the events in it."""
        line, self._pending = self._pending.replace(EVENT, b""), b""
        while not line.endswith(b"\n"):
            line += self._byte().replace(EVENT, b"")
        return line.decode().strip()


def run_command(case: Case, run_dir: Path, kill: Kill | None = None) -> bool:
    """Begin or go on with a run through the program itself, whose events are lines; return as `run` does."""
    options = [word for override in case.overrides for word in ("--set", override)]
    begun = (run_dir / "spec.toml").exists()
    words = ["resume", str(run_dir)] if begun else ["train", str(SPEC), "--run-dir", str(run_dir), *options]
    with subprocess.Popen(
        [*DQN, *words, "--plain"],
        start_new_session=True,
        stdout=subprocess.PIPE,
        env={**os.environ, **ONE_THREAD},
    ) as process:
        assert process.stdout is not None
        lines = list(islice(process.stdout, kill.events if kill else None))
        if kill and len(lines) == kill.events:
            time.sleep(kill.seconds_later)
            os.killpg(process.pid, signal.SIGKILL)
    return was_killed(process.returncode)


def was_killed(exit_code: int) -> bool:
    if exit_code not in (0, -signal.SIGKILL):
        raise RuntimeError(f"the run ended by itself with exit code {exit_code}")
    return exit_code != 0


@dataclass
class Story:
    """How a run fared."""

    kills: list[Kill] = field(default_factory=list)
    finished: bool = False


def killed_while_raised(zygote: Zygote, case: Case, run_dir: Path, kills: Sequence[Sequence[Kill]]) -> Story:
    """Run a case to its budget and to each that it is raised to, each stage killed by kills of its own."""
    story = Story()
    for frames, of_stage in zip((None, *case.raised_frames), kills, strict=True):
        for kill in of_stage:
            if not zygote.run(case, run_dir, kill, frames if _to_be_raised(run_dir, frames) else None):
                break
            story.kills.append(kill)
        else:
            zygote.run(case, run_dir, None, frames if _to_be_raised(run_dir, frames) else None)
    return story


def _to_be_raised(run_dir: Path, frames: int | None) -> bool:
    """Return whether a budget is to be raised still; what the log tells of must be on disk."""
    if frames is None:
        return False
    run = RunDirectory.open(run_dir)
    raised = resume_point(run).total_frames == frames
    reported = f'"total_frames": {frames}' in run.events.read_text()
    assert raised or not reported, f"{run_dir}: a budget that was reported is forgotten"
    return not raised


def unbroken(zygote: Zygote, case: Case, run_dir: Path) -> None:
    """Run a case to its budget and to each that it is raised to, and kill nothing."""
    for frames in (None, *case.raised_frames):
        assert not zygote.run(case, run_dir, None, frames)


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
