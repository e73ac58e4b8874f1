"""Systems that train in turns, each in a process of its own: what every comparison of speed here shares.

A module that compares says which systems there are and which ratios matter (`Match`); `run` is its command.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

from hardware import circumstances

HERE = Path(__file__).parent
SETTINGS = {
    "epsilon": 0.1,
    "capacity_steps": 10_000,
    "prefill_steps": 1_000,
    "target_period_updates": 2_500,
    "warm_up_updates": 50,
}
"""The same for all: a small replay, because the prefill is not measured and draws cost the same."""


@dataclass(frozen=True, kw_only=True)
class Contender:
    """A system: the program that trains it, its interpreter, and options in addition to the common ones.

    An option with several values is given several times.
    """

    python: Path
    script: str
    options: Mapping[str, object | Sequence[object]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Match:
    """Who takes turns, by name; and the pairs of names whose ratio, first over second, is wanted."""

    contenders: Mapping[str, Contender]
    ratios: Sequence[tuple[str, str]]
    notes: Sequence[str] = ()
    """What a reader of the ratios must know."""


class Comparison(Protocol):
    """What a module that compares has."""

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Add what only it needs."""
        ...

    def match(self, options: argparse.Namespace) -> Match:
        """Prepare every contender's environment and list the contenders that take turns."""
        ...


def prepare(venv: Path, packages: Sequence[str], *, without_dependencies: Sequence[str] = ()) -> Path:
    """Return the interpreter of an environment with these packages and our own version of torch.

    What is `without_dependencies` is installed alone, whatever versions of Python it asks for.
    """
    python, ready = venv / "bin" / "python", venv / "ready"
    wanted = "\n".join([*packages, *without_dependencies, version("torch")]) + "\n"
    if not ready.exists() or ready.read_text() != wanted:
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
        torch = f"torch=={version('torch').partition('+')[0]}"
        install: list[str | Path] = [python, "-m", "pip", "install", "--quiet"]
        subprocess.run([*install, torch], check=True)  # first, so that pip keeps its build
        subprocess.run([*install, torch, *packages], check=True)
        if without_dependencies:
            bare = ["--no-deps", "--ignore-requires-python"]
            subprocess.run([*install, *bare, *without_dependencies], check=True)
        ready.write_text(wanted)
    return python


def measure(contender: Contender, *, seconds: float, threads: int) -> dict[str, Any]:
    """Run a contender once and parse its output."""
    options = {"seconds": seconds, "threads": threads, **SETTINGS, **contender.options}
    done = subprocess.run(
        [contender.python, HERE / contender.script, *words(options)],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env=environment(threads),
    )
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def words(options: Mapping[str, object]) -> list[str]:
    """Return options as words of a command line."""
    found = []
    for key, value in options.items():
        for each in value if isinstance(value, (list, tuple)) else (value,):
            found += [f"--{key.replace('_', '-')}", str(each)]
    return found


def environment(threads: int) -> dict[str, str]:
    """Return this process's environment for as many torch threads, and without a GPU."""
    few = {"OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}
    return {**os.environ, **few, "CUDA_VISIBLE_DEVICES": ""}


def take_turns(match: Match, *, rounds: int, seconds: float, threads: int) -> dict[str, Any]:
    """Return each round's figures, their medians, and the median over rounds of every ratio."""
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in match.contenders}
    for _ in range(rounds):
        for name, contender in match.contenders.items():
            found[name].append(measure(contender, seconds=seconds, threads=threads))
            print(f"{name}: {found[name][-1]['frames_per_second']:,.0f} frames/s", file=sys.stderr)
    speeds = {name: [each["frames_per_second"] for each in found[name]] for name in found}
    ratios = {
        f"{first} / {second}": [a / b for a, b in zip(speeds[first], speeds[second], strict=True)]
        for first, second in match.ratios
    }
    return {
        "median_frames_per_second": {name: statistics.median(speeds[name]) for name in speeds},
        "median_ratio": {name: statistics.median(each) for name, each in ratios.items()},
        "ratios": ratios,
        "rounds": found,
    }


def united(matches: Sequence[Match]) -> Match:
    """Return all in one, each contender once."""
    return Match(
        contenders={name: each for match in matches for name, each in match.contenders.items()},
        ratios=list(dict.fromkeys(pair for match in matches for pair in match.ratios)),
        notes=list(dict.fromkeys(note for match in matches for note in match.notes)),
    )


def run(description: str | None, comparisons: Sequence[Comparison]) -> None:
    """Read the command line, measure, and write and print what was found."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, help="JSON file to write")
    parser.add_argument(
        "--venv",
        type=Path,
        default=Path(tempfile.gettempdir()) / "benchmark_venvs",
        help="folder of the other systems' environments, one each; made where missing",
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=20.0, help="of each measurement")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="of torch, in all")
    for comparison in comparisons:
        comparison.add_options(parser)
    options = parser.parse_args()
    match = united([comparison.match(options) for comparison in comparisons])
    turns = take_turns(match, rounds=options.rounds, seconds=options.seconds, threads=options.threads)
    settings = {**SETTINGS, "seconds": options.seconds, "threads": options.threads, "notes": match.notes}
    options.out.write_text(json.dumps({"settings": settings, **circumstances(), **turns}, indent=2) + "\n")
    print(json.dumps({name: turns[name] for name in turns if name.startswith("median")}, indent=2))
