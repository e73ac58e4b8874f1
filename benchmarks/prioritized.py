"""Prioritized replay at 1,000,000 transitions: ours, a sum tree walked one sample at a time, and tianshou's.

Every system takes its turn in each round, on one thread and on two: a draw of 32 with importance weights,
then new priorities for the 32. Then what share that is of a whole Track B update. tianshou is installed into
an environment of its own, `--venv`, behind our own version of torch.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from contextlib import closing
from functools import partial
from pathlib import Path

from atari_dqn.train.build import assemble_without_actors
from atari_dqn.train.loop import q_learning
from contender import prepare
from hardware import circumstances
from prioritized_systems import LEAVES, SYSTEMS, median_milliseconds
from spec_here import load_spec_here

import torch

HERE = Path(__file__).parent
TIANSHOU_PACKAGES = ("tianshou==2.0.*",)
CAPACITY_STEPS, PREFILL_STEPS = 10_000, 1_000
LIMIT_MILLISECONDS, LIMIT_SHARE = 0.6, 0.06


def measure(python: Path | str, system: str, threads: int) -> dict[str, float]:
    """Return the medians of one system, in a process of its own."""
    command = [python, HERE / "prioritized_systems.py", system, str(threads)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    print(f"{system}, {threads} threads: {result['together_ms']:.3f} ms", file=sys.stderr)
    return result


def compare(python: Path, *, rounds: int, threads: int) -> dict[str, list[dict[str, float]]]:
    """Return each system's figures of every round."""
    found: dict[str, list[dict[str, float]]] = {name: [] for name in SYSTEMS}
    for _ in range(rounds):
        for name in SYSTEMS:
            found[name].append(measure(python if name == "tianshou" else sys.executable, name, threads))
    return found


def track_b_update(threads: int, updates: int) -> float:
    """Return the median of a whole Track B update on Pong: draw, frames, loss, optimizer, priorities.

    Its replay is small; the share is of the draw and priorities among 1,000,000, measured before.
    """
    overrides = (
        f"replay.capacity_steps={CAPACITY_STEPS}",
        f"replay.prefill_steps={PREFILL_STEPS}",
        "replay.device=cpu",
        f"learner.threads={threads}",
        "system.workers=0",
    )
    spec = load_spec_here(HERE.parent / "runs" / "pong_trackB.toml", overrides).spec
    with closing(assemble_without_actors(spec, torch.device("cpu"))) as training:
        training.begin()
        for _ in q_learning(training):
            if training.clock.updates:
                break
        return median_milliseconds(partial(training.update, 1), updates)


def measured(python: Path, threads: int, options: argparse.Namespace) -> dict[str, object]:
    """Return the comparison, the share of an update, and whether both keep their limits."""
    rounds = compare(python, rounds=options.rounds, threads=threads)
    medians = {
        name: {key: statistics.median(row[key] for row in rows) for key in rows[0]}
        for name, rows in rounds.items()
    }
    ours_ms = medians["ours"]["together_ms"]
    update_ms = track_b_update(threads, options.updates)
    return {
        "threads": threads,
        "medians": medians,
        "times_ours": {name: median_ratio(rows, rounds["ours"]) for name, rows in rounds.items()},
        "track_b_update_ms": update_ms,
        "share_of_update": ours_ms / update_ms,
        "within_limits": ours_ms <= LIMIT_MILLISECONDS and ours_ms / update_ms <= LIMIT_SHARE,
        "rounds": rounds,
    }


def median_ratio(rows: list[dict[str, float]], ours: list[dict[str, float]]) -> float:
    return statistics.median(
        row["together_ms"] / own["together_ms"] for row, own in zip(rows, ours, strict=True)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="JSON file to write")
    parser.add_argument("--venv", type=Path, default=Path(tempfile.gettempdir()) / "prioritized_venv")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--updates", type=int, default=100, help="of Track B, for the share")
    options = parser.parse_args()
    python = prepare(options.venv, TIANSHOU_PACKAGES)
    results = [measured(python, threads, options) for threads in options.threads]
    settings = {"leaves": LEAVES, "rounds": options.rounds, "updates": options.updates}
    report = {"settings": settings, **circumstances(), "results": results}
    options.out.write_text(json.dumps(report, indent=2) + "\n")
    print(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
