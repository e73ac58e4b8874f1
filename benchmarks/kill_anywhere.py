"""Kill small runs of real games 200 times and compare what comes out with runs that nothing killed.

Five games, both tracks, 1 and 8 lanes, 0 and 2 worker processes: 40 cases, five kills each, half of them at a
random moment, half inside a checkpoint's write; then five cases through the program `dqn`, twice each.
SIGKILL goes to the whole process group. State digests, tables to the byte, evaluation results, gates,
summaries and what is kept on disk must be the same. Prints a line a case and writes JSON to --out.
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
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Any

from hardware import circumstances

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from killing import (
    Case,
    Kill,
    Story,
    Zygote,
    differences,
    killed_over_and_over,
    outcome,
    random_kill,
    run_command,
)

GAMES = ("pong", "breakout", "qbert", "seaquest", "space_invaders")
CASES = [Case(*values) for values in product(GAMES, "AB", (1, 8), (0, 2))]
COMMAND_CASES = [Case(game, "B", 1, 0) for game in GAMES]
KILLS = 5
COMMAND_KILLS = 2


class Bench:
    """Runs cases in a folder, each beside a run of the same seed that nothing kills."""

    def __init__(self, zygote: Zygote, folder: Path) -> None:
        self.zygote, self.folder = zygote, folder
        self._whole: dict[tuple[str, str, int], dict[str, Any]] = {}

    def whole(self, case: Case) -> dict[str, Any]:
        """Return the outcome of the unbroken run; workers change nothing, so it has none."""
        key = (case.game, case.track, case.lanes)
        if key not in self._whole:
            path = self.folder / "_".join(map(str, key))
            self.zygote.run(Case(*key, 0), path)
            self._whole[key] = outcome(path)
            shutil.rmtree(path)
        return self._whole[key]

    def killed(self, case: Case) -> dict[str, object]:
        """Kill a case five times at moments of its own stream of chance, and compare."""
        expected, chance = self.whole(case), random.Random(str(case))
        kills = [random_kill(chance) for _ in range(KILLS)]
        path = self.folder / "killed"
        story = killed_over_and_over(self.zygote, case, path, kills)
        return self._result(case, story, path, expected)

    def killed_command(self, case: Case) -> dict[str, object]:
        """Kill the program itself."""
        expected, chance = self.whole(case), random.Random(f"command {case}")
        kills = [Kill(chance.randrange(1, 12), chance.uniform(0.0, 0.1)) for _ in range(COMMAND_KILLS)]
        path = self.folder / "killed"
        story = Story([kill for kill in kills if run_command(case, path, kill)])
        if not (path / "summary.json").exists():
            run_command(case, path)
        return self._result(case, story, path, expected)

    def _result(self, case: Case, story: Story, path: Path, expected: dict[str, Any]) -> dict[str, object]:
        found = differences(outcome(path), expected)
        shutil.rmtree(path)
        return {**asdict(case), "kills": [asdict(kill) for kill in story.kills], "differences": found}


def results(folder: Path) -> Iterator[dict[str, Any]]:
    with Zygote() as zygote:
        bench = Bench(zygote, folder)
        for case in CASES:
            yield {"through": "fork", **bench.killed(case)}
        for case in COMMAND_CASES:
            yield {"through": "dqn", **bench.killed_command(case)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    out = parser.parse_args().out
    began, found = time.monotonic(), []
    with tempfile.TemporaryDirectory() as folder:
        for result in results(Path(folder)):
            found.append(result)
            case = Case(result["game"], result["track"], result["lanes"], result["workers"])
            told = ", ".join(result["differences"]) or "no difference"
            print(f"{result['through']:5}{case}: {len(result['kills'])} kills, {told}", flush=True)
    kills = [kill for result in found for kill in result["kills"]]
    totals = {
        "kills": len(kills),
        "cases": len(found),
        "cases_that_differ": sum(bool(result["differences"]) for result in found),
        "kills_by_place": Counter(kill["point"] or "at a random moment" for kill in kills),
        "seconds": round(time.monotonic() - began),
    }
    print(json.dumps(totals, indent=2))
    out.write_text(json.dumps({**totals, "results": found, **circumstances()}, indent=2) + "\n")


if __name__ == "__main__":
    main()
