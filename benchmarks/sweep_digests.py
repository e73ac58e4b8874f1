"""Train 24 small runs of real games by `dqn train` alone and by sweeps, and compare all that is left of them.

Two methods, four games, three seeds: all of them by `dqn sweep` on this machine and on a Ray cluster, then
each by itself, with one thread. State digests, tables to the byte, evaluation results, gates, summaries and
what is kept on disk must be the same. Prints a line a run and writes JSON to --out. With --folder the runs
are kept, and a benchmark that was interrupted goes on.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

from hardware import circumstances

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from killing import differences, outcome
from sweeping import GAMES, METHODS, SPEC, outcomes, program, start, write_sweep

PLACES = ("local", "ray")


def train_alone(folder: Path, method: str, game: str, seed: int) -> str:
    """Train a run by `dqn train`, or go on with it; return its name."""
    name = f"{method}_{game}_seed{seed}"
    keys = [f"game={game}", f"seed={seed}", *METHODS[method]]
    options = [word for key in keys for word in ("--set", key)]
    run = folder / name
    if not (run / "summary.json").exists():
        begun = run.exists()
        words: list[str | Path] = ["resume", run] if begun else ["train", SPEC, *options, "--run-dir", run]
        done = program(*words, "--plain", folder=folder)
        assert done.returncode == 0, f"{name}: exit code {done.returncode}: {done.stderr}"
    print(f"alone: {name}", flush=True)
    return name


def without_name(found: dict[str, Any]) -> dict[str, Any]:
    """Remove the name of a run's spec: a method's name in a sweep, and a file's name alone."""
    return {key: value for key, value in found.items() if key != "summary.name"}


def train_by_a_sweep(sweep: Path, folder: Path, place: str) -> None:
    """Train all runs by a sweep at a place, or go on with it."""
    with start(sweep, folder, "--on", place) as process:
        code = process.wait()
    assert code == 0, folder.with_name(f"{folder.name}.command.txt").read_text()
    print(f"--on {place}: done", flush=True)


def compared(folder: Path, alone: dict[str, Any]) -> dict[str, Any]:
    """Compare the runs of a sweep with those that were trained alone."""
    found = {name: without_name(each) for name, each in outcomes(folder).items()}
    differing = {name: differences(found[name], alone[name]) for name in alone}
    return {
        "runs": len(found),
        "equal_digests": sum(found[name]["state digest"] == alone[name]["state digest"] for name in alone),
        "differences": {name: names for name, names in differing.items() if names},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--folder", type=Path, help="of the runs, which are kept; default: none")
    parser.add_argument("--games", type=int, default=len(GAMES))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--at-once", type=int, default=2, help="runs alone that are trained side by side")
    arguments = parser.parse_args()
    games, seeds = GAMES[: arguments.games], range(1, arguments.seeds + 1)
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(arguments.at_once) as pool:
        folder = (arguments.folder or Path(name)).absolute()
        (folder / "alone").mkdir(parents=True, exist_ok=True)
        sweep = write_sweep(folder, games=games, seeds=arguments.seeds)
        for place in PLACES:
            train_by_a_sweep(sweep, folder / place, place)
        runs = product(METHODS, games, seeds)
        names = list(pool.map(lambda run: train_alone(folder / "alone", *run), runs))
        alone = {each: without_name(outcome(folder / "alone" / each)) for each in names}
        places = {place: compared(folder / place, alone) for place in PLACES}
    digests = {name: found["state digest"] for name, found in alone.items()}
    found = {"runs": len(alone), "places": places, "digests": digests}
    arguments.out.write_text(json.dumps({**found, **circumstances()}, indent=2) + "\n")
    print(json.dumps(places, indent=2))
    sys.exit(any(each["differences"] for each in places.values()))


if __name__ == "__main__":
    main()
