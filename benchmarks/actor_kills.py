"""Kill actors and learners of free-running runs on Catch: what is lost, what is counted, what is left.

Three of four kills go to a random actor of one training, at a random moment. Its ratio of updates to steps
must be the declared one within 5 % before, during and after the kills. At the end every message on its way is
received: what the actors played, by their own counters, must be what was stored and what was counted as
dropped, to the step. The other kills go to the learner of a run (`dqn train`, then `dqn resume` until it
ends), whose actors must end with it. No process and no shared memory may be left. Writes JSON to --out.
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
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from atari_dqn.spec.loader import load_spec
from atari_dqn.spec.schema import Spec
from atari_dqn.train.build import assemble
from atari_dqn.train.free_running import FreeRunningTraining
from hardware import circumstances

import psutil
import torch

TINY = Path(__file__).parents[1] / "tests" / "tiny_catch.toml"
SHARED_MEMORY = Path("/dev/shm")
OURS = ("pym-", "psm_", "dqn")
ACTORS = 4
TOLERANCE = 0.05
STEPS_BETWEEN_KILLS, STEPS_AROUND = 300, 2_000
DRAINING_SECONDS, PATIENCE_SECONDS = 30.0, 300.0
ENDING_SECONDS = 60.0
"""An actor that is starting ends when it has imported its packages."""
OVERRIDES = (
    "actors.mode=free_running",
    f"actors.processes={ACTORS}",
    f"env.num_envs={2 * ACTORS}",
    "actors.fragment_steps=5",
    "actors.sync_period_steps=10",
    "actors.error_buffer_steps=40",
    "replay.capacity_steps=400",
    "system.actors_per_core=8",
)


def spec_of(steps: int) -> Spec:
    return load_spec(TINY, [*OVERRIDES, f"training.total_frames={4 * steps}"]).spec


def ratio_since(training: FreeRunningTraining, before: tuple[int, int]) -> float:
    """Return updates per step since some counts of updates and steps, as a multiple of the declared ratio."""
    updates, steps = before
    declared = training.updates_per_period / training.update_period_steps
    return (training.clock.updates - updates) / (training.clock.steps - steps) / declared


def kill_actor(training: FreeRunningTraining, chance: random.Random) -> int | None:
    """Kill one of the actors that are alive; return its number."""
    alive = dict(training.envs.actors)  # type: ignore[attr-defined]
    if not alive:
        return None
    number = chance.choice(sorted(alive))
    os.kill(alive[number].process.pid, signal.SIGKILL)
    return number


def kill_actors(kills: int, chance: random.Random) -> dict[str, Any]:
    """Train, kill some actors on the way, and compare what they played with what is stored and dropped."""
    steps = 2 * STEPS_AROUND + kills * STEPS_BETWEEN_KILLS
    with closing(assemble(spec_of(steps), torch.device("cpu"))) as training:
        assert isinstance(training, FreeRunningTraining)
        training.begin()
        iterations = training.iterations()

        def train_until(step: int) -> float:
            before = training.clock.updates, training.clock.steps
            while training.clock.steps < step and next(iterations, None) is not None:
                pass
            return ratio_since(training, before)

        start = training.clock.prefill_steps
        train_until(start)
        ratios = {"before": train_until(start + STEPS_AROUND)}
        before, killed = (training.clock.updates, training.clock.steps), []
        for _ in range(kills):
            train_until(
                training.clock.steps + chance.randrange(STEPS_BETWEEN_KILLS // 2, STEPS_BETWEEN_KILLS)
            )
            killed.append(kill_actor(training, chance))
        ratios["during"] = ratio_since(training, before)
        ratios["after"] = train_until(training.total_steps)
        unaccounted = drained(training)
        records = training.envs.records
        training.replay.check()
        return {
            "killed_actors": killed,
            "restarts": sum(record.restarts for record in records),
            "steps": training.clock.steps,
            "ratios": ratios,
            "dropped_steps": sum(record.dropped_steps for record in records),
            "unaccounted_steps": unaccounted,
        }


def drained(training: FreeRunningTraining) -> int:
    """Receive what is on its way, and return the steps that were played but neither received nor dropped.

    Actors that have ended meanwhile are not started again, and those that are alive have no orders left.
    """
    until = time.monotonic() + DRAINING_SECONDS
    while (left := _left(training)) and time.monotonic() < until:
        training.receive(0.1)
    return left


def _left(training: FreeRunningTraining) -> int:
    carrier = training.envs.carrier  # type: ignore[attr-defined]
    played = [carrier.steps_played(number) for number in range(ACTORS)]
    counted = [record.steps_received + record.dropped_steps for record in training.envs.records]
    return sum(played) - sum(counted)


def run_words(folder: Path) -> Iterator[list[str]]:
    """Yield the command that trains a run, and then the one that resumes it, again and again."""
    options = [word for each in OVERRIDES for word in ("--set", each)]
    train = ["train", str(TINY), "--run-dir", str(folder), "--plain", "--set", "training.total_frames=8000"]
    yield [*train, *options]
    while True:
        yield ["resume", str(folder), "--plain"]


def kill_learners(kills: int, chance: random.Random, folder: Path) -> dict[str, Any]:
    """Kill the learner of a run some times, and resume it to its end."""
    killed, orphans, code = 0, 0, None
    for words in run_words(folder):
        process = subprocess.Popen(
            [sys.executable, "-m", "atari_dqn", *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        if killed == kills:
            code = process.wait(PATIENCE_SECONDS)
            break
        _wait_until_training(process, folder)
        time.sleep(chance.uniform(0.0, 2.0))
        actors = psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []
        if process.poll() is not None:
            code = process.returncode
            break
        process.kill()
        process.wait()
        killed += 1
        orphans += sum(map(_runs, psutil.wait_procs(actors, timeout=ENDING_SECONDS)[1]))
    summary = json.loads((folder / "summary.json").read_text()) if code == 0 else {}
    return {"kills": killed, "exit_code": code, "frames": summary.get("env_frames"), "orphans": orphans}


def _runs(process: psutil.Process) -> bool:
    """Return whether a process still runs; one that has ended may wait for its parent for ever."""
    with suppress(psutil.Error):
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    return False


def _wait_until_training(process: subprocess.Popen[bytes], folder: Path) -> None:
    log = folder / "events.jsonl"
    size = log.stat().st_size if log.exists() else 0
    until = time.monotonic() + PATIENCE_SECONDS
    while process.poll() is None and time.monotonic() < until:
        if log.exists() and log.stat().st_size > size:
            return
        time.sleep(0.05)


def shared_memory() -> set[str]:
    """Return the names of ours in shared memory."""
    files = SHARED_MEMORY.iterdir() if SHARED_MEMORY.is_dir() else ()
    return {file.name for file in files if file.name.startswith(OURS)}


def problems(actors: dict[str, Any], learners: dict[str, Any] | None, left: list[str]) -> list[str]:
    """Say what is not as it must be."""
    found = [f"replay ratio {when}: {ratio:.3f} of the declared one"
             for when, ratio in actors["ratios"].items() if abs(ratio - 1) > TOLERANCE]  # fmt: skip
    if actors["unaccounted_steps"]:
        found.append(f"{actors['unaccounted_steps']} steps were played, and neither stored nor dropped")
    if learners and (learners["exit_code"] or learners["orphans"]):
        found.append(f"the run whose learner was killed: {learners}")
    return [*found, *(f"left in shared memory: {name}" for name in left)]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, help="JSON file to write")
    parser.add_argument("--kills", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    chance, before = random.Random(options.seed), shared_memory()
    of_learners = options.kills // 4
    actors = kill_actors(options.kills - of_learners, chance)
    with tempfile.TemporaryDirectory() as folder:
        learners = kill_learners(of_learners, chance, Path(folder) / "run")
    found = problems(actors, learners, sorted(shared_memory() - before))
    result = {
        **circumstances(),
        "kills": options.kills,
        "actors": actors,
        "learners": learners,
        "problems": found,
    }
    print(json.dumps({key: result[key] for key in ("actors", "learners", "problems")}, indent=1))
    options.out.write_text(json.dumps(result, indent=1) + "\n")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
