"""Train 24 small runs of real games by `dqn train` alone and by sweeps, and compare all that is left of them.

Two methods, four games, three seeds. Each run is first trained by itself, with one thread; then all of them
by `dqn sweep` on this machine and on a Ray cluster. State digests, tables to the byte, evaluation results,
gates, summaries and what is kept on disk must be the same. Prints a line a place and writes JSON to --out.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

from hardware import circumstances

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from killing import outcome
from sweeping import GAMES, METHODS, SPEC, all_differences, outcomes, program, start, write_sweep

PLACES = ("local", "ray")


def train_alone(folder: Path, method: str, game: str, seed: int) -> tuple[str, dict[str, Any]]:
    """Train a run by `dqn train`; return its name and all that must be the same."""
    name = f"{method}_{game}_seed{seed}"
    keys = [f"game={game}", f"seed={seed}", *METHODS[method]]
    options = [word for key in keys for word in ("--set", key)]
    done = program("train", SPEC, *options, "--run-dir", folder / name, "--plain", folder=folder)
    assert done.returncode == 0, done.stderr
    print(f"alone: {name}", flush=True)
    return name, outcome(folder / name)


def trained_by_a_sweep(sweep: Path, folder: Path, place: str, alone: dict[str, Any]) -> dict[str, Any]:
    """Train all runs by a sweep at a place; return what differs from the runs that were trained alone."""
    began = time.monotonic()
    with start(sweep, folder, "--on", place) as process:
        code = process.wait()
    assert code == 0, folder.with_name(f"{folder.name}.command.txt").read_text()
    found, differing = outcomes(folder), all_differences(folder, alone)
    result = {
        "runs": len(found),
        "equal_digests": sum(found[name]["state digest"] == alone[name]["state digest"] for name in alone),
        "differences": differing,
        "seconds": round(time.monotonic() - began),
    }
    print(f"--on {place}: {result}", flush=True)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--games", type=int, default=len(GAMES))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--at-once", type=int, default=2, help="runs alone that are trained side by side")
    arguments = parser.parse_args()
    games, seeds = GAMES[: arguments.games], range(1, arguments.seeds + 1)
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(arguments.at_once) as pool:
        folder = Path(name)
        runs = list(product(METHODS, games, seeds))
        (folder / "alone").mkdir()
        alone = dict(pool.map(lambda run: train_alone(folder / "alone", *run), runs))
        sweep = write_sweep(folder, games=games, seeds=arguments.seeds)
        places = {place: trained_by_a_sweep(sweep, folder / place, place, alone) for place in PLACES}
    digests = {name: found["state digest"] for name, found in alone.items()}
    found = {"runs": len(alone), "places": places, "digests": digests}
    arguments.out.write_text(json.dumps({**found, **circumstances()}, indent=2) + "\n")


if __name__ == "__main__":
    main()
