"""Kill small runs of real games 60 times while their budgets are raised; compare with unbroken ones.

Each case is run to its budget and then taken further twice. Every stage is killed: at random moments, inside
a checkpoint's write, and inside the raising of a budget. A budget that the log tells of must be on disk.
SIGKILL goes to the whole process group. State digests, tables to the byte, evaluation results, gates,
summaries and what is kept on disk must be the same. Prints a line a run and writes JSON to --out.
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
from itertools import cycle
from pathlib import Path
from typing import Any

from hardware import circumstances

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from killing import (
    Case,
    Kill,
    Zygote,
    differences,
    killed_while_raised,
    outcome,
    random_kill,
    random_kill_of_a_raise,
    unbroken,
)

RAISED_FRAMES = (5_600, 6_400)
CASES = (
    Case("pong", "A", 1, 0, RAISED_FRAMES),
    Case("breakout", "B", 8, 0, RAISED_FRAMES),
    Case("seaquest", "B", 1, 0, RAISED_FRAMES),
)


def kills_of(chance: random.Random) -> list[list[Kill]]:
    """Return the kills of a run: two before its budget is spent, and two each time that it is raised."""
    raising = [[random_kill_of_a_raise(chance), random_kill(chance)] for _ in RAISED_FRAMES]
    return [[random_kill(chance), random_kill(chance)], *raising]


def killed(zygote: Zygote, case: Case, folder: Path, whole: dict[str, Any], seed: int) -> dict[str, Any]:
    chance = random.Random(f"{seed} {case}")
    with tempfile.TemporaryDirectory(dir=folder) as place:
        path = Path(place) / "run"
        story = killed_while_raised(zygote, case, path, kills_of(chance))
        found = differences(outcome(path), whole)
    print(f"{case}: {len(story.kills)} kills, {', '.join(found) or 'no difference'}", flush=True)
    return {**asdict(case), "kills": [asdict(kill) for kill in story.kills], "differences": found}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--kills", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0, help="of the moments of the kills")
    parser.add_argument("--minutes", type=float, default=60, help="begin no run after these")
    arguments = parser.parse_args()
    began, done = time.monotonic(), 0
    results: list[dict[str, Any]] = []
    whole: dict[Case, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as name, Zygote() as zygote:
        folder = Path(name)
        for seed, case in enumerate(cycle(CASES), arguments.seed):
            if case not in whole:
                path = folder / f"whole {len(whole)}"
                unbroken(zygote, case, path)
                whole[case] = outcome(path)
            results.append(killed(zygote, case, folder, whole[case], seed))
            done += len(results[-1]["kills"])
            if done >= arguments.kills or time.monotonic() - began > 60 * arguments.minutes:
                break
    places = Counter(kill["point"] or "at a random moment" for run in results for kill in run["kills"])
    totals = {
        "kills": done,
        "runs": len(results),
        "runs_that_differ": sum(bool(result["differences"]) for result in results),
        "kills_by_place": places,
        "seconds": round(time.monotonic() - began),
    }
    print(json.dumps(totals, indent=2))
    arguments.out.write_text(json.dumps({**totals, "results": results, **circumstances()}, indent=2) + "\n")
    sys.exit(any(result["differences"] for result in results))


if __name__ == "__main__":
    main()
