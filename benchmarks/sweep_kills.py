"""Kill a sweep of small runs of real games 60 times; compare what comes out with a sweep that nothing killed.

A sweep is two methods on some games with some seeds. SIGKILL goes, at random moments, to the command `dqn
sweep`, to the processes of one of its runs, or to both (--on ray: to the command, to a run, to Ray's worker,
raylet or head); the command is started again each time it has ended. State digests, tables to the byte,
evaluation results, gates, summaries and what is kept on disk must be the same for every run; no run may be
begun twice, and no lease, process or shared memory may be left. Prints a line a kill and a sweep, and writes
JSON to --out, after each kill. If that file is there, the benchmark goes on with it, and with the sweeps in
--folder, until there are so many kills.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hardware import circumstances

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from atari_dqn.files.atomic import write_json_atomically
from atari_dqn.run.sweep.folder import SweepFolder

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


def kill_over_and_over(
    sweep: Path,
    folder: Path,
    result: dict[str, Any],
    *,
    most: int,
    longest_seconds: float,
    until: float,
    save: Callable[[], None],
) -> None:
    """Run a sweep to its end, or go on with it, killed at most so many times and not after a time.

    `result`: each kill is added to it. `save` is called after each.
    """
    place, kills = ("--on", result["on"]), result["kills"]
    victims = RAY_VICTIMS if result["on"] == "ray" else VICTIMS
    process = start(sweep, folder, *place)
    for _ in range(most):
        if time.monotonic() >= until:
            break
        chance = random.Random(f"{folder.name} {len(kills)}")
        planned = random_sweep_kill(chance, victims, longest_seconds)
        if kill(process, folder, planned):
            finished = len([*folder.glob("*/summary.json")])
            kills.append({**asdict(planned), "runs_finished": finished})
            print(f"  kill {len(kills)}: {planned.victim} after {planned.seconds:.1f} s", flush=True)
            save()
        if process.poll() == 0:
            break
        if process.poll() is not None:
            process = start(sweep, folder, *place)
    result["exit_code"] = process.wait(10 * PATIENCE_SECONDS)


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
    return sum(bool(result.get(key)) for key in PROBLEMS) + bool(result.get("exit_code"))


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


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--folder", type=Path, required=True, help="of the sweeps")
    parser.add_argument("--kills", type=int, default=60, help="in all sweeps of the file")
    parser.add_argument("--minutes", type=float, default=60, help="kill nothing after these")
    parser.add_argument("--games", type=int, default=len(GAMES))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument(
        "--longest-seconds", type=float, default=6.0, help="from the start of a training to the kill"
    )
    parser.add_argument("--on", choices=("local", "ray"), default="local")
    return parser.parse_args()


def main() -> None:
    arguments = options()
    place, until = arguments.folder.absolute(), time.monotonic() + 60 * arguments.minutes
    results = json.loads(arguments.out.read_text())["results"] if arguments.out.exists() else []
    place.mkdir(parents=True, exist_ok=True)
    sweep = write_sweep(place, games=GAMES[: arguments.games], seeds=arguments.seeds)
    finish(sweep, place / "whole", patience_seconds=3_600)
    whole = outcomes(place / "whole")

    def save() -> None:
        found = {**totals(results, whole), "results": results, **circumstances()}
        write_json_atomically(arguments.out, found)

    while (left := arguments.kills - totals(results, whole)["kills"]) > 0 and time.monotonic() < until:
        if not results or "exit_code" in results[-1]:
            results.append({"on": arguments.on, "kills": []})
        folder, before = place / f"killed{len(results)}", {*unused_shared_memory()}
        kill_over_and_over(
            sweep,
            folder,
            results[-1],
            most=left,
            longest_seconds=arguments.longest_seconds,
            until=until,
            save=save,
        )
        if results[-1]["exit_code"] == 0:
            results[-1] |= remains(folder, whole)
            results[-1]["shared_memory_left"] = sorted({*unused_shared_memory()} - before)
        save()
        problems = problems_of(results[-1])
        print(f"{folder.name}: {len(results[-1]['kills'])} kills, {problems or 'no'} problems", flush=True)
        if not problems:
            shutil.rmtree(folder)
    print(json.dumps(totals(results, whole), indent=2))
    sys.exit(any(map(problems_of, results)))


if __name__ == "__main__":
    main()
