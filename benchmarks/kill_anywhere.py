"""Kill small runs of real games 200 times and compare what comes out with runs that nothing killed.

Five games, both tracks, 1 and 8 environments, 0 and 2 worker processes: 40 cases, five kills each, half of
them at a random moment, half inside a checkpoint's write; then five cases through the program `dqn`, twice
each. SIGKILL goes to the whole process group. State digests, tables to the byte, evaluation results, gates,
summaries and what is kept on disk must be the same. Prints a line a case and writes JSON to --out.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from functools import partial
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
WORKERS = (0, 2)
KILLS = 5
COMMAND_KILLS = 2


class Group:
    """The cases of a game, a track and a number of environments: workers change nothing."""

    def __init__(self, zygote: Zygote, folder: Path, game: str, track: str, envs: int) -> None:
        self.zygote, self.folder = zygote, folder
        self.game, self.track, self.envs = game, track, envs
        zygote.run(self.case(0), folder / "whole")
        self.expected = outcome(folder / "whole")

    def case(self, workers: int) -> Case:
        return Case(self.game, self.track, self.envs, workers)

    def results(self) -> Iterator[dict[str, Any]]:
        for workers in WORKERS:
            yield from self.killed(self.case(workers))
        if (self.track, self.envs) == ("B", 1):
            yield self.killed_command(self.case(0))

    def killed(self, case: Case) -> Iterator[dict[str, Any]]:
        """Kill a case at moments of its own stream of chance, in as many runs as five kills take."""
        chance, left = random.Random(str(case)), KILLS
        while left:
            kills = [random_kill(chance) for _ in range(left)]
            with tempfile.TemporaryDirectory(dir=self.folder) as folder:
                path = Path(folder) / "killed"
                story = killed_over_and_over(self.zygote, case, path, kills)
                yield self._result("fork", case, story, path, self.expected)
            left -= len(story.kills)

    def killed_command(self, case: Case) -> dict[str, Any]:
        """Kill the program itself."""
        chance, path = random.Random(f"command {case}"), self.folder / "killed_command"
        run_command(case, self.folder / "whole_command")
        kills = [Kill(chance.randrange(1, 12), chance.uniform(0.0, 0.1)) for _ in range(COMMAND_KILLS)]
        story = Story([kill for kill in kills if run_command(case, path, kill)])
        if not (path / "summary.json").exists():
            run_command(case, path)
        return self._result("dqn", case, story, path, outcome(self.folder / "whole_command"))

    def _result(
        self, through: str, case: Case, story: Story, path: Path, expected: dict[str, Any]
    ) -> dict[str, Any]:
        found, kills = differences(outcome(path), expected), [asdict(kill) for kill in story.kills]
        shown = ", ".join(found) or "no difference"
        print(f"{through:5}{case}: {len(kills)} kills, {shown}", flush=True)
        return {"through": through, **asdict(case), "kills": kills, "differences": found}


def results_of(group: tuple[int, str, str], until: float) -> list[dict[str, Any]]:
    if time.monotonic() > until:
        return []
    envs, track, game = group
    with tempfile.TemporaryDirectory() as folder, Zygote() as zygote:
        return list(Group(zygote, Path(folder), game, track, envs).results())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--at-once", type=int, default=2, help="groups of cases that run side by side")
    parser.add_argument("--minutes", type=float, default=60, help="begin no group of cases after these")
    arguments = parser.parse_args()
    began = time.monotonic()
    with ThreadPoolExecutor(arguments.at_once) as pool:
        groups = pool.map(
            partial(results_of, until=began + 60 * arguments.minutes), product((1, 8), "AB", GAMES)
        )
        found = [result for group in groups for result in group]
    kills = [kill for result in found for kill in result["kills"]]
    totals = {
        "kills": len(kills),
        "runs": len(found),
        "cases": len({(each["game"], each["track"], each["envs"], each["workers"]) for each in found}),
        "runs_that_differ": sum(bool(result["differences"]) for result in found),
        "kills_by_place": Counter(kill["point"] or "at a random moment" for kill in kills),
        "seconds": round(time.monotonic() - began),
    }
    print(json.dumps(totals, indent=2))
    arguments.out.write_text(json.dumps({**totals, "results": found, **circumstances()}, indent=2) + "\n")
    sys.exit(any(result["differences"] for result in found))


if __name__ == "__main__":
    main()
