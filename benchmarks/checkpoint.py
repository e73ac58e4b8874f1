"""What a checkpoint of 1,000,000 Pong frames costs: pause, write, bytes, memory, and the way back.

Track A on Pong with eight environments (which fill the replay eight times as fast). The replay is filled with
a tape of real frames, played at random and repeated; a repetition lies far outside of what the compressor
looks back on. Three checkpoints are saved while real training goes on in the foreground: of the whole replay,
of 250,000 new transitions, and of a few. Then a fresh process loads the last one and makes its first update.
"""

import argparse
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import cycle, islice
from pathlib import Path
from tempfile import TemporaryDirectory

from atari_dqn.run.checkpoint.store import CheckpointStore, load_checkpoint
from atari_dqn.spec.schema import Spec
from atari_dqn.telemetry.writers import TableSink
from atari_dqn.train.build import assemble_without_actors
from atari_dqn.train.loop import q_learning
from atari_dqn.train.training import Training
from atari_dqn.types import StepBatch
from hardware import circumstances
from spec_here import load_spec_here

import numpy as np
import psutil
import torch

CPU = torch.device("cpu")
SPEC = Path(__file__).parents[1] / "runs/pong_trackA.toml"
ENVS, PREFILL_STEPS = 8, 50_000
OVERRIDES = [f"env.num_envs={ENVS}", f"learner.threads={torch.get_num_threads()}", "system.workers=0"]
TAPE_ROWS = 5_000
QUIET_ITERATIONS = 40


def pong(capacity_steps: int) -> Spec:
    sizes = [
        f"replay.capacity_steps={capacity_steps}",
        f"replay.prefill_steps={min(PREFILL_STEPS, capacity_steps)}",
    ]
    return load_spec_here(SPEC, [*OVERRIDES, *sizes]).spec


def record_tape(training: Training) -> list[tuple[np.ndarray, StepBatch]]:
    """Play at random, and return what was done and what followed."""
    generator = np.random.default_rng(0)
    tape = []
    for _ in range(TAPE_ROWS):
        actions = generator.integers(training.envs.info.num_actions, size=ENVS)
        training.envs.send(actions)
        tape.append((actions, copied(training.envs.recv())))
    return tape


def copied(step: StepBatch) -> StepBatch:
    return StepBatch(**{name: getattr(step, name).copy() for name in StepBatch.__dataclass_fields__})


def store_rows(training: Training, tape: Iterator[tuple[np.ndarray, StepBatch]], transitions: int) -> None:
    """Put rows of the tape into the replay, and set clock and learner as if they had been played."""
    for actions, step in islice(tape, transitions // ENVS):
        training.store(actions, step)
    training.clock.steps += transitions
    training.clock.updates += training.clock.updates_due(
        period_steps=training.update_period_steps, updates_per_period=training.updates_per_period
    )
    training.learner.updates = training.clock.updates


@contextmanager
def peak_memory() -> Iterator[list[int]]:
    """Watch the resident bytes of this process; the list's only value is the most there was."""
    process, done = psutil.Process(), threading.Event()
    peak = [process.memory_info().rss]

    def watch() -> None:
        while not done.wait(0.01):
            peak[0] = max(peak[0], process.memory_info().rss)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield peak
    finally:
        done.set()
        thread.join()


def iterations_per_second(training: Training, iterations: int) -> float:
    began = time.perf_counter()
    for _ in islice(q_learning(training), iterations):
        pass
    return iterations / (time.perf_counter() - began)


def checkpoint(training: Training, store: CheckpointStore, tables: TableSink) -> dict[str, object]:
    """Save one while training goes on; return what it cost."""
    own_bytes = psutil.Process().memory_info().rss
    iterations, loop = 0, q_learning(training)
    with peak_memory() as peak:
        began = time.perf_counter()
        state, bookkeeping = training.state_dict(), {"tables": tables.state_dict()}
        store.begin(step=training.clock.steps, training=state, bookkeeping=bookkeeping, eval_score=None)
        paused = time.perf_counter() - began
        longest = 0.0
        while (saved := store.poll()) is None:
            iteration_began = time.perf_counter()
            next(loop)
            longest = max(longest, time.perf_counter() - iteration_began)
            iterations += 1
        seconds = time.perf_counter() - began
    return {
        "pause_seconds": paused,
        "write_seconds": seconds,
        "longest_iteration_seconds": longest,
        "iterations_per_second_meanwhile": iterations / (seconds - paused),
        "peak_bytes_over_own": peak[0] / own_bytes,
        "state_digest": saved.state_digest,
        **sizes(store.latest()),
    }


def sizes(directory: Path) -> dict[str, int]:
    """Return the bytes of a checkpoint; of them those that no other one shares."""
    files = [path.stat() for path in directory.rglob("*") if path.is_file()]
    return {
        "bytes": sum(stat.st_size for stat in files),
        "new_bytes": sum(stat.st_size for stat in files if stat.st_nlink == 1),
    }


def measure(folder: Path, capacity_steps: int) -> dict[str, object]:
    store, tables = CheckpointStore(folder / "checkpoints", keep_last=3), TableSink(folder)
    with closing(assemble_without_actors(pong(capacity_steps), CPU)) as training:
        training.begin()
        tape = cycle(record_tape(training))
        training.total_steps = 2**62
        store_rows(training, tape, capacity_steps + ENVS * 100)
        quiet = iterations_per_second(training, QUIET_ITERATIONS)
        report = {"iterations_per_second_without": quiet, "whole_replay": checkpoint(training, store, tables)}
        store_rows(training, tape, capacity_steps // 4)
        report["quarter_new"] = checkpoint(training, store, tables)
        report["few_new"] = checkpoint(training, store, tables)
        rows = training.replay.ring.state_dict()["rows"]
        row = rows.read(rows.first, rows.first + 1)
        raw = (rows.stop - rows.first) * sum(column.nbytes for column in row.values())
    return {"raw_replay_bytes": raw, "transitions": training.replay.num_transitions, **report}


def resume(directory: Path, capacity_steps: int) -> None:
    """Load a checkpoint and make one update; print the seconds since this process was started."""
    with closing(assemble_without_actors(pong(capacity_steps), CPU)) as training:
        training.load_state_dict(load_checkpoint(directory)[0])
        training.update(1)
        print(time.time() - psutil.Process().create_time())


def resumed_in_a_fresh_process(folder: Path, capacity_steps: int) -> float:
    command = [sys.executable, __file__, "--capacity-steps", str(capacity_steps), "--resume"]
    done = subprocess.run([*command, str(folder)], capture_output=True, text=True, check=True)
    return float(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="JSON file to write")
    parser.add_argument("--capacity-steps", type=int, default=1_000_000)
    parser.add_argument("--resume", type=Path, help="load this checkpoint and say how long it took")
    options = parser.parse_args()
    if options.resume:
        resume(options.resume, options.capacity_steps)
        return
    if options.out is None:
        parser.error("--out is missing")
    with TemporaryDirectory() as folder:
        report = measure(Path(folder), options.capacity_steps)
        latest = CheckpointStore(Path(folder) / "checkpoints").latest()
        report["resume_to_first_update_seconds"] = resumed_in_a_fresh_process(latest, options.capacity_steps)
    report = {**circumstances(), "torch_threads": torch.get_num_threads(), **report}
    options.out.write_text(json.dumps(report, indent=2) + "\n")
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
