"""Kill `pong_quick` at random moments and measure how much of its work is lost.

Each round starts `dqn train runs/pong_quick.toml` with a short checkpoint period, or resumes it, sends
SIGKILL to the whole process group some seconds after its first checkpoint, and compares the moment of the
kill with the elapsed time that the newest checkpoint recorded. Prints a line a kill and writes JSON to
--out.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from atari_dqn.run.checkpoint.manifest import read_manifest
from atari_dqn.run.checkpoint.store import CheckpointStore
from atari_dqn.run.directory import RunDirectory
from hardware import circumstances

SPEC = Path(__file__).parents[1] / "runs" / "pong_quick.toml"
DQN = (sys.executable, "-m", "atari_dqn")
PATIENCE_SECONDS = 600.0


def newest_checkpoint(run: Path) -> tuple[int, float] | None:
    """Return step and elapsed seconds of the newest checkpoint; None where there is none."""
    entries = CheckpointStore(run / "checkpoints").catalog() if (run / "spec.toml").exists() else []
    if not entries:
        return None
    manifest = read_manifest(run / "checkpoints" / entries[-1].path)
    return manifest["step"], manifest["bookkeeping"]["elapsed_seconds"]


def seconds_of_last_start(run: RunDirectory) -> float:
    """Return the Unix time at which the run was last started or resumed."""
    events = [json.loads(line) for line in run.events.read_text().splitlines()]
    starts = [event["timestamp"] for event in events if event["kind"] in ("started", "resumed")]
    return datetime.fromisoformat(starts[-1]).timestamp()


def kill_once(words: Sequence[str], run: Path, wait_seconds: float) -> dict[str, Any]:
    """Run a command until it has saved anew and so many seconds more, kill it, and return what was lost."""
    before = newest_checkpoint(run)
    elapsed_before = before[1] if before else 0.0
    with subprocess.Popen([*DQN, *words], start_new_session=True, stdout=subprocess.DEVNULL) as process:
        until = time.monotonic() + PATIENCE_SECONDS
        while newest_checkpoint(run) == before and time.monotonic() < until:
            time.sleep(0.2)
        time.sleep(wait_seconds)
        os.killpg(process.pid, signal.SIGKILL)
        killed = time.time()
    kept = newest_checkpoint(run)
    assert kept is not None
    assert kept != before
    worked = killed - seconds_of_last_start(RunDirectory.open(run))
    return {"step": kept[0], "lost_seconds": round(elapsed_before + worked - kept[1], 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--kills", type=int, default=8)
    parser.add_argument("--period-seconds", type=float, default=20.0)
    arguments = parser.parse_args()
    chance, kills = random.Random(1), []
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        options = ("--plain", "--set", f"checkpoint.period_seconds={arguments.period_seconds}")
        words: tuple[str, ...] = ("train", str(SPEC), "--run-dir", str(run), *options)
        for _ in range(arguments.kills):
            kills.append(kill_once(words, run, chance.uniform(0, 2 * arguments.period_seconds)))
            print(kills[-1], flush=True)
            words = ("resume", str(run), "--plain")
    most = max(kill["lost_seconds"] for kill in kills)
    found = {"period_seconds": arguments.period_seconds, "most_lost_seconds": most, "kills": kills}
    arguments.out.write_text(json.dumps({**found, **circumstances()}, indent=2) + "\n")


if __name__ == "__main__":
    main()
