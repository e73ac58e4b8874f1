"""Kill sweeps of small runs of real games 60 times; compare what comes out with sweeps that nothing killed.

A sweep is two methods on some games with some seeds. SIGKILL goes, at random moments, to the command `dqn
sweep`, to the processes of one of its runs, or to both (--on ray: also to Ray's worker, raylet and head); the
command is started again each time it has ended. State digests, tables to the byte, evaluation results,
gates, summaries and what is kept on disk must be the same for every run; no run may be begun twice, and no
lease or process may be left. Prints a line a kill and a sweep, and writes JSON to --out.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hardware import circumstances

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from sweeping import (
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
GAMES = ("pong", "breakout", "qbert", "seaquest")


def killed(
    sweep: Path, folder: Path, whole: dict[str, Any], chance: random.Random, most: int, on: str
) -> dict[str, Any]:
    """Run a sweep to its end, killed at most so many times; return the kills and what differs."""
    kills: list[Any] = []
    victims = RAY_VICTIMS if on == "ray" else VICTIMS
    process = start(sweep, folder, "--on", on)
    while len(kills) < most:
        planned = random_sweep_kill(chance, victims)
        if not kill(process, folder, planned):
            break
        kills.append(asdict(planned))
        print(f"  kill {len(kills)}: {planned.victim} after {planned.seconds:.1f} s", flush=True)
        if process.poll() is not None:
            process = start(sweep, folder, "--on", on)
    code = process.wait(PATIENCE_SECONDS)
    begun = times_trained(folder)
    result = {
        "kills": kills,
        "exit_code": code,
        "differences": all_differences(folder, whole),
        "begun_twice": [name for name, times in begun.items() if times > 1],
        "leases_left": [path.name for path in SweepFolder(folder).leases.path.iterdir()],
        "processes_left": [*processes_of(folder), *left_by_ray(folder.parent)],
    }
    problems = sum(bool(result[key]) for key in list(result)[1:])
    print(f"sweep of {len(begun)} runs: {len(kills)} kills, {problems or 'no'} problems", flush=True)
    return result


def left_by_ray(place: Path) -> list[str]:
    """Find processes of Ray that are left after some seconds."""
    until = time.monotonic() + ENDING_SECONDS
    while (left := remains_of_ray(place)) and time.monotonic() < until:
        time.sleep(0.2)
    return left


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--kills", type=int, default=60)
    parser.add_argument("--games", type=int, default=len(GAMES))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--on", choices=("local", "ray"), default="local")
    parser.add_argument("--seed", type=int, default=0, help="of the moments of the kills")
    arguments = parser.parse_args()
    results: list[Any] = []
    began, done = time.monotonic(), 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sweep = write_sweep(folder, games=GAMES[: arguments.games], seeds=arguments.seeds)
        finish(sweep, folder / "whole", patience_seconds=3_600)
        whole = outcomes(folder / "whole")
        chance = random.Random(arguments.seed)
        while done < arguments.kills:
            place = folder / f"killed {len(results)}"
            results.append(killed(sweep, place, whole, chance, arguments.kills - done, arguments.on))
            done += max(1, len(results[-1]["kills"]))
    totals = {
        "kills": sum(len(result["kills"]) for result in results),
        "sweeps": len(results),
        "runs_in_a_sweep": len(whole),
        "kills_by_victim": Counter(each["victim"] for result in results for each in result["kills"]),
        "sweeps_with_a_problem": sum(any(result[key] for key in list(result)[1:]) for result in results),
        "seconds": round(time.monotonic() - began),
    }
    print(json.dumps(totals, indent=2))
    arguments.out.write_text(json.dumps({**totals, "results": results, **circumstances()}, indent=2) + "\n")


if __name__ == "__main__":
    main()
