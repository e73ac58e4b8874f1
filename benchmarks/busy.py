"""Training with three ways in which OpenMP's threads wait, on a quiet and on a busy machine.

What `dqn bench` calls frames/s, in a fresh process a round; the ways take turns. "limited" is the package's
way: a thread looks 2,000 times before it sleeps. "passive": it sleeps at once. "spinning" is libgomp's
default: it looks 300,000 times. Busy: next to a program that never waits.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path

from atari_dqn import MOST_SPINS
from atari_dqn.spec.keys import flatten
from atari_dqn.spec.loader import load_spec
from hardware import circumstances
from new_shell import environment_of_a_new_shell

SPEC = Path(__file__).parents[1] / "runs" / "pong_trackA.toml"
WAYS = {
    "limited": {"OMP_WAIT_POLICY": "passive", "GOMP_SPINCOUNT": str(MOST_SPINS)},
    "passive": {"OMP_WAIT_POLICY": "passive"},
    "spinning": {"GOMP_SPINCOUNT": "300000"},
}
MACHINES = {"quiet": 0, "busy": 1}
"""How many programs that never wait run during the training."""


NEVER_WAITS = """
import os, sys
while os.getppid() == int(sys.argv[1]):
    for _ in range(10**6):
        pass
"""
"""A program that ends when the one that started it has ended, also if that was killed."""


@contextmanager
def busy_programs(number: int) -> Iterator[None]:
    """Run as many programs that never wait during the block."""
    command = [sys.executable, "-c", NEVER_WAITS, str(os.getpid())]
    programs = [subprocess.Popen(command) for _ in range(number)]
    try:
        yield
    finally:
        for program in programs:
            program.kill()
            program.wait()


def frames_per_second(spec: str, way: str, *, threads: int, seconds: float) -> float:
    """Return the rate that a fresh process measures."""
    environment = environment_of_a_new_shell() | {**WAYS[way], "OMP_NUM_THREADS": str(threads)}
    done = subprocess.run(
        [sys.executable, "-m", "atari_dqn.train.estimate", "cpu", str(seconds)],
        input=spec, capture_output=True, text=True, check=True, env=environment,
    )  # fmt: skip
    return float(json.loads(done.stdout.splitlines()[-1])["frames_per_second"])


def measure(options: argparse.Namespace) -> None:
    """Measure round by round, and write what there is after each."""
    overrides = [f"learner.threads={options.threads}", "system.workers=0", *options.set]
    spec = json.dumps(flatten(load_spec(options.spec, overrides).spec))
    rates: dict[str, list[float]] = {f"{machine}, {way}": [] for machine, way in product(MACHINES, WAYS)}
    for number in range(options.rounds):
        for machine, way in product(MACHINES, WAYS):
            with busy_programs(MACHINES[machine]):
                rate = frames_per_second(spec, way, threads=options.threads, seconds=options.seconds)
            rates[f"{machine}, {way}"].append(round(rate, 1))
            print(f"round {number + 1}, {machine}, {way}: {rate:,.0f} frames/s", flush=True)
        options.out.write_text(json.dumps(result(rates, options), indent=2) + "\n")


def result(rates: dict[str, list[float]], options: argparse.Namespace) -> dict[str, object]:
    """Compute the ratios, each of two measurements that follow each other: machines are noisy."""
    over_spinning = {
        f"{machine}, {way}": _ratios(rates[f"{machine}, {way}"], rates[f"{machine}, spinning"])
        for machine, way in product(MACHINES, WAYS)
        if way != "spinning"
    }
    busy_over_quiet = {way: _ratios(rates[f"busy, {way}"], rates[f"quiet, {way}"]) for way in WAYS}
    return {
        **circumstances(),
        "settings": {"spec": options.spec.name, "set": options.set, "threads": options.threads,
                     "rounds": options.rounds, "seconds": options.seconds, "note": options.note},
        "frames_per_second": rates,
        "median_frames_per_second": _medians(rates),
        "over_spinning": over_spinning, "median_over_spinning": _medians(over_spinning),
        "busy_over_quiet": busy_over_quiet, "median_busy_over_quiet": _medians(busy_over_quiet),
    }  # fmt: skip


def _ratios(numerators: list[float], denominators: list[float]) -> list[float]:
    return [round(one / other, 3) for one, other in zip(numerators, denominators, strict=True)]


def _medians(values: dict[str, list[float]]) -> dict[str, float]:
    return {name: statistics.median(each) for name, each in values.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--spec", type=Path, default=SPEC)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--note", default="", help="what else ran")
    measure(parser.parse_args())


if __name__ == "__main__":
    main()
