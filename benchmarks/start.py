"""Seconds from the command `dqn train SPEC` to its first learning update, and what they are spent on.

Each round is a fresh process that runs the command, with a clock around the functions that begin and end each
part, and that ends after the first update. Processor time is that of the process without its workers; where
other programs run, it says more than the seconds. The first round also fills the system's cache of files.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hardware import circumstances

PARTS = (
    "interpreter and spec", "torch", "other imports", "hardware and checks", "parts of the training",
    "run directory", "filling the replay", "first update",
)  # fmt: skip
Stamp = Callable[[], None]


def stamped(function: Callable[..., Any], stamp: Stamp, *, before: bool = False) -> Callable[..., Any]:
    """Wrap a function so that the end of its call, and with `before` its beginning too, is stamped."""

    def call(*arguments: Any, **options: Any) -> Any:
        if before:
            stamp()
        result = function(*arguments, **options)
        if not before:
            stamp()
        return result

    return call


def first_update(update: Callable[..., None], stamp: Stamp) -> Callable[..., None]:
    """Return an update that ends the command after the first that learns."""

    def call(training: Any, count: int) -> None:
        if count:
            stamp()
            update(training, count)
            stamp()
            raise KeyboardInterrupt

    return call


def run_command(began: float, spec: str, overrides: list[str], folder: str) -> None:
    """Run `dqn train` until its first update; print seconds and processor seconds at each part's end."""
    stamps: list[tuple[float, float]] = []

    def stamp() -> None:
        stamps.append((time.time() - began, time.process_time()))

    from atari_dqn.cli import main
    from atari_dqn.cli import train as command

    start = command._start

    def timed_start(*arguments: Any, **options: Any) -> None:
        stamp()
        import torch  # noqa: F401

        stamp()
        from atari_dqn.train import build, launch
        from atari_dqn.train.training import Training
        from atari_dqn.view import run_views  # noqa: F401

        stamp()
        launch.start = stamped(launch.start, stamp, before=True)
        launch.assemble = stamped(build.assemble, stamp)  # type: ignore[attr-defined]
        launch.run_to_end = stamped(launch.run_to_end, stamp, before=True)  # type: ignore[attr-defined]
        Training.update = first_update(Training.update, stamp)  # type: ignore[method-assign]
        start(*arguments, **options)

    command._start = timed_start
    sets = [word for override in overrides for word in ("--set", override)]
    sys.argv = ["dqn", "train", spec, "--plain", "--run-dir", folder, *sets]
    try:
        main()
    except SystemExit:
        print(json.dumps(stamps))


def measure_once(spec: str, overrides: list[str]) -> dict[str, tuple[float, float]]:
    """Return seconds and processor seconds of each part in a fresh process."""
    with TemporaryDirectory() as folder:
        words = [str(time.time()), spec, json.dumps(overrides), str(Path(folder) / "run")]
        done = subprocess.run(
            [sys.executable, __file__, "--child", *words], capture_output=True, text=True, check=False
        )
    stamps = json.loads(done.stdout.splitlines()[-1])
    assert len(stamps) == len(PARTS), f"expected {len(PARTS)} stamps, got {len(stamps)}:\n{done.stderr}"
    differences = zip(PARTS, [[0.0, 0.0], *stamps], stamps, strict=False)
    return {
        name: (round(end[0] - begin[0], 3), round(end[1] - begin[1], 3)) for name, begin, end in differences
    }


def result(rounds: list[dict[str, tuple[float, float]]], options: argparse.Namespace) -> dict[str, object]:
    """Return the rounds with the medians of their totals and of each part."""
    kinds = ("seconds", "processor_seconds")
    totals = {
        kind: [round(sum(part[place] for part in each.values()), 3) for each in rounds]
        for place, kind in enumerate(kinds)
    }
    return {
        **circumstances(),
        "settings": {"spec": options.spec, "set": options.set, "note": options.note},
        "rounds": rounds,
        "totals": totals,
        "median_totals": {kind: statistics.median(values) for kind, values in totals.items()},
        "median_parts": {
            name: [round(statistics.median(each[name][place] for each in rounds), 3) for place in (0, 1)]
            for name in PARTS
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--spec", default="pong_quick")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--note", default="", help="what else ran")
    options = parser.parse_args()
    rounds = []
    for number in range(options.rounds):
        rounds.append(measure_once(options.spec, options.set))
        print(f"round {number + 1}: {sum(part[0] for part in rounds[-1].values()):.2f} s", flush=True)
    report = result(rounds, options)
    options.out.write_text(json.dumps(report, indent=2) + "\n")
    print(json.dumps({name: report[name] for name in ("median_totals", "median_parts")}, indent=2))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        run_command(float(sys.argv[2]), sys.argv[3], json.loads(sys.argv[4]), sys.argv[5])
    else:
        main()
