"""Time what a sweep of 1,000 runs costs to plan and to show, and what its runner costs next to two runs.

Planned and shown by the whole command, `dqn sweep FILE --plan` and `dqn sweep FOLDER --status`; the table of
the status is refreshed in one process too, as the live view does, with 1,000 run directories that are copies
of one small run, all of whose tables have grown since the last look. The runner's cost is the processor time
of the process `dqn sweep` itself while it has two runs trained, after its own start. Prints each figure and
writes JSON to --out.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from hardware import circumstances

import psutil

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from atari_dqn.cli.tables import PIPE_COLUMNS
from atari_dqn.run.sweep.status import SweepStatus
from atari_dqn.view.sweep_text import status_lines

from sweeping import PATIENCE_SECONDS, trainings

DQN = (sys.executable, "-m", "atari_dqn")
SMALL = Path(__file__).parents[1] / "tests" / "tiny_catch.toml"
GROWING = ("update_log.csv", "train_log.csv", "throughput_log.csv", "events.jsonl")
TWO_RUNS = """
spec = "pong_trackA"
seeds = 2
[set]
replay.capacity_steps = 20_000
replay.prefill_steps = 1_000
"""


def dqn(*words: str | Path) -> None:
    subprocess.run([*DQN, *map(str, words)], check=True, stdout=subprocess.DEVNULL)


def median_seconds(action: Callable[[], object], times: int) -> float:
    """Return the median duration of an action."""
    found = []
    for _ in range(times):
        began = time.monotonic()
        action()
        found.append(time.monotonic() - began)
    return round(statistics.median(found), 3)


def run_directories(place: Path, sweep: Path) -> Path:
    """Begin a sweep of many runs, and give each member the directory of a run, still running; return it."""
    dqn("train", SMALL, "--run-dir", place / "one", "--plain")
    (place / "one" / "summary.json").unlink()
    shutil.rmtree(place / "one" / "checkpoints")
    folder = place / "runs"
    with subprocess.Popen(
        [*DQN, "sweep", sweep, "--folder", folder, "--plain"], stdout=subprocess.DEVNULL
    ) as process:
        until = time.monotonic() + PATIENCE_SECONDS
        while not trainings(folder) and time.monotonic() < until:
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
    for member in SweepStatus(folder).record.members:
        shutil.rmtree(folder / member.name, ignore_errors=True)
        shutil.copytree(place / "one", folder / member.name)
    return folder


def refreshed(status: SweepStatus) -> None:
    """Read the status again, and lay its table out."""
    status.refresh()
    list(status_lines(status, PIPE_COLUMNS))


def seconds_to_refresh(folder: Path, times: int) -> float:
    """Return the median time in which the status is read and laid out again, after every table has grown."""
    status = SweepStatus(folder)
    refreshed(status)
    found = []
    for _ in range(times):
        for run in status.record.members:
            for name in GROWING:
                path = folder / run.name / name
                row = path.read_text().splitlines()[-1]
                with path.open("a") as file:
                    file.write(row + "\n")
        found.append(median_seconds(lambda: refreshed(status), 1))
    return round(statistics.median(found), 3)


def share_of_a_core(place: Path, seconds: float) -> float:
    """Return the share of a core that the command `dqn sweep` uses while two runs are trained."""
    sweep, folder = place / "two.toml", place / "two"
    sweep.write_text(TWO_RUNS)
    with subprocess.Popen(
        [*DQN, "sweep", sweep, "--folder", folder, "--plain"], stdout=subprocess.DEVNULL
    ) as process:
        until = time.monotonic() + PATIENCE_SECONDS
        while len(list(folder.glob("*/update_log.csv"))) < 2:
            assert process.poll() is None, "the sweep has ended"
            assert time.monotonic() < until, "no two runs begin"
            time.sleep(0.1)
        runner = psutil.Process(process.pid)
        before = runner.cpu_times()
        time.sleep(seconds)
        after = runner.cpu_times()
        process.send_signal(signal.SIGTERM)
    return round((after.user + after.system - before.user - before.system) / seconds, 5)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--members", type=int, default=1_000)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=60.0, help="for which the runner is observed")
    arguments = parser.parse_args()
    found: dict[str, object] = {"members": arguments.members}

    def note(name: str, value: float) -> None:
        found[name] = value
        print(f"{name}: {value}", flush=True)

    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        sweep = place / "many.toml"
        sweep.write_text(f'spec = "{SMALL}"\nseeds = {arguments.members}\n')
        note(
            "seconds_of_plan_command", median_seconds(lambda: dqn("sweep", sweep, "--plan"), arguments.times)
        )
        folder = run_directories(place, sweep)
        note(
            "seconds_of_status_command",
            median_seconds(lambda: dqn("sweep", folder, "--status"), arguments.times),
        )
        note("seconds_to_refresh_the_status", seconds_to_refresh(folder, arguments.times))
        note("runner_share_of_a_core", share_of_a_core(place, arguments.seconds))
    arguments.out.write_text(json.dumps({**found, **circumstances()}, indent=2) + "\n")


if __name__ == "__main__":
    main()
