"""Test real commands with failing system calls and with power failures.

First, some hundred calls of `dqn train` and `dqn resume` are made to fail, one per command, with an error
that Linux documents for the call or with a write of half of its bytes. The command must go on, or name the
file without a traceback, and the next resume must be exact. Then a run is put into every state that a power
failure can leave, on a strict and on an ordered disk (tests/lost_writes.py). Checkpoints that were reported
as saved must be whole, and a resume must be exact. Prints a line for each violation and writes JSON to --out.
Needs Linux and a C compiler.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from hardware import circumstances

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from failing_calls import Commands, FaultTrials, some_faults
from power_failures import Recorded

PHASES = ("train", "resume")


def failed_calls(commands: Commands, folder: Path, most: int) -> dict[str, Any]:
    """Test at most `most` failing system calls."""
    trials = FaultTrials(commands, folder)
    counts = {phase: trials.counts(phase) for phase in PHASES}
    faults = some_faults(counts, most, random.Random(1))
    results = {str(fault): printed(str(fault), trials.complaints(fault)) for fault in faults}
    return {
        "faults": len(faults),
        "by_call": Counter(f"{fault.phase} {fault.kind}" for fault in faults),
        "calls_of_a_command": counts,
        "wrong": {name: complaints for name, complaints in results.items() if complaints},
    }


def lost_writes(commands: Commands, folder: Path) -> dict[str, Any]:
    """Test every state that a power failure can leave."""
    recorded = Recorded(commands, folder)
    failures = recorded.failures()
    results = {}
    for failure in failures:
        name = f"{failure.disk.value} disk after call {failure.calls}"
        results[name] = printed(name, recorded.complaints(failure))
    wrong = {name: complaints for name, complaints in results.items() if complaints}
    return {"calls": len(recorded.calls), "states": len(failures), "wrong": wrong}


def printed(name: str, complaints: list[str]) -> list[str]:
    """Print the complaints of one test, and return them."""
    for complaint in complaints:
        print(f"{name}: {complaint}", flush=True)
    return complaints


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--faults", type=int, default=240)
    arguments = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as name, Commands(Path(name)) as commands:
        folders = [Path(name) / part for part in ("calls", "power")]
        for folder in folders:
            folder.mkdir()
        found = {
            "failed_calls": failed_calls(commands, folders[0], arguments.faults),
            "lost_writes": lost_writes(commands, folders[1]),
        }
    totals = {part: {"wrong": len(each["wrong"])} for part, each in found.items()}
    print(json.dumps({**totals, "seconds": round(time.monotonic() - began)}, indent=2))
    seconds = round(time.monotonic() - began)
    arguments.out.write_text(json.dumps({**found, "seconds": seconds, **circumstances()}, indent=2) + "\n")
    sys.exit(any(each["wrong"] for each in found.values()))


if __name__ == "__main__":
    main()
