"""Kill a sweep of small runs of real games 60 times; compare what comes out with a sweep that nothing killed.

A sweep is two methods on some games with some seeds. SIGKILL goes, at random moments, to the command `dqn
sweep`, to the processes of one of its runs, or to both (--on ray: to the command, to a run, to Ray's worker,
raylet or head); the command is started again each time it has ended. State digests, tables to the byte,
evaluation results, gates, summaries and what is kept on disk must be the same for every run; no run may be
begun twice, and no lease, process or shared memory may be left. Prints a line a kill and a sweep, and writes
JSON to --out. If that file has results, kills are added until there are so many; --folder keeps the sweep
that nothing killed for the next time.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hardware import circumstances

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from sweeping import (
    GAMES,
    PATIENCE_SECONDS,
    RAY_VICTIMS,
    VICTIMS,
    all_differences,
    finish,
    kill,
    outcomes,
    processes_of,
    random_sweep_kill,
    remains_of_ray,
    start,
    times_trained,
    write_sweep,
)

from atari_dqn.run.sweep.folder import SweepFolder

ENDING_SECONDS = 30.0
PROBLEMS = (
    "differences",
    "begun_twice",
    "leases_left",
    "leases_of_commands_left",
    "processes_left",
    "shared_memory_left",
)
"""What is listed of each sweep, and should be empty."""
SHARED_MEMORY = Path("/dev/shm")


def killed(
    sweep: Path,
    folder: Path,
    whole: dict[str, Any],
    chance: random.Random,
    *,
    most: int,
    on: str,
    until: float,
) -> dict[str, Any]:
    """Run a sweep to its end, killed at most so many times and not after a time; return what differs."""
    kills: list[Any] = []
    victims, before = RAY_VICTIMS if on == "ray" else VICTIMS, set(unused_shared_memory())
    process = start(sweep, folder, "--on", on)
    while len(kills) < most and time.monotonic() < until:
        planned = random_sweep_kill(chance, victims)
        if kill(process, folder, planned):
            kills.append(asdict(planned))
            print(f"  kill {len(kills)}: {planned.victim} after {planned.seconds:.1f} s", flush=True)
        if process.poll() == 0:
            break
        if process.poll() is not None:
            process = start(sweep, folder, "--on", on)
    code = process.wait(10 * PATIENCE_SECONDS)
    result = {"on": on, "kills": kills, "exit_code": code}
    if code == 0:
        result |= remains(folder, whole) | {"shared_memory_left": [*{*unused_shared_memory()} - before]}
    print(f"sweep on {on}: {len(kills)} kills, {problems_of(result) or 'no'} problems", flush=True)
    return result


def remains(folder: Path, whole: dict[str, Any]) -> dict[str, Any]:
    """List the differences from the undisturbed sweep, and all that should not be left."""
    own, begun = SweepFolder(folder), times_trained(folder)
    return {
        "differences": all_differences(folder, whole),
        "begun_twice": [name for name, times in begun.items() if times > 1],
        "leases_left": [path.name for path in own.leases.path.iterdir()],
        "leases_of_commands_left": [path.name for path in own.commands.path.iterdir()],
        "processes_left": [*processes_of(folder), *left_by_ray(folder.parent)],
    }


def problems_of(result: dict[str, Any]) -> int:
    """Count the kinds of problems of a sweep."""
    return sum(bool(result[key]) for key in PROBLEMS if key in result) + (result["exit_code"] != 0)


def left_by_ray(place: Path) -> list[str]:
    """Find processes of Ray that are left after some seconds."""
    until = time.monotonic() + ENDING_SECONDS
    while (left := remains_of_ray(place)) and time.monotonic() < until:
        time.sleep(0.2)
    return left


def unused_shared_memory() -> Iterator[str]:
    """Yield the files of shared memory that no process has mapped."""
    mapped = set()
    for path in Path("/proc").glob("[0-9]*/maps"):
        with suppress(OSError):
            mapped |= {
                line.split()[-1] for line in path.read_text().splitlines() if str(SHARED_MEMORY) in line
            }
    for path in SHARED_MEMORY.iterdir():
        if path.is_file() and str(path) not in mapped:
            yield path.name


def totals(results: list[dict[str, Any]], whole: dict[str, Any]) -> dict[str, Any]:
    """Add the results of all sweeps up."""
    return {
        "kills": sum(len(result["kills"]) for result in results),
        "sweeps": len(results),
        "runs_in_a_sweep": len(whole),
        "kills_by_victim": Counter(
            f"{result['on']}: {each['victim']}" for result in results for each in result["kills"]
        ),
        "sweeps_with_a_problem": sum(bool(problems_of(result)) for result in results),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--folder", type=Path, help="of the undisturbed sweep, which is kept; default: none")
    parser.add_argument("--kills", type=int, default=60, help="in all sweeps of the file")
    parser.add_argument("--minutes", type=float, default=60, help="kill nothing after these")
    parser.add_argument("--games", type=int, default=len(GAMES))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--on", choices=("local", "ray"), default="local")
    arguments = parser.parse_args()
    results = json.loads(arguments.out.read_text())["results"] if arguments.out.exists() else []
    with tempfile.TemporaryDirectory() as name:
        kept = (arguments.folder or Path(name)).absolute()
        kept.mkdir(parents=True, exist_ok=True)
        sweep = write_sweep(kept, games=GAMES[: arguments.games], seeds=arguments.seeds)
        finish(sweep, kept / "whole", patience_seconds=3_600)
        whole, until = outcomes(kept / "whole"), time.monotonic() + 60 * arguments.minutes
        while (left := arguments.kills - sum(len(each["kills"]) for each in results)) > 0:
            if time.monotonic() >= until:
                break
            folder, chance = Path(name) / f"killed {len(results)}", random.Random(f"{len(results)} {left}")
            results.append(killed(sweep, folder, whole, chance, most=left, on=arguments.on, until=until))
            found = {**totals(results, whole), "results": results, **circumstances()}
            arguments.out.write_text(json.dumps(found, indent=2) + "\n")
            if not problems_of(results[-1]):
                shutil.rmtree(folder)
    print(json.dumps(totals(results, whole), indent=2))


if __name__ == "__main__":
    main()
