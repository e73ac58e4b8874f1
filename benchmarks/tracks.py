"""Track B beside Track A on Pong: emulator frames/s after the prefill, taking turns.

Both on one lane in fp32 on the CPU, batch 32 every 4 agent steps, with the same replay size, target period,
ε and torch threads. Track B adds the second stream of a dueling network, a forward pass of the online network
for Double, the priorities, and sticky actions, and has another optimizer.
"""

import argparse
import json
import os
import statistics
import sys
from pathlib import Path

from hardware import circumstances
from versus_sb3 import GAME, SETTINGS, measure, speed

RUNS = Path(__file__).parents[1] / "runs"
SPECS = {"A": RUNS / "pong_trackA.toml", "B": RUNS / "pong_trackB.toml"}


def compare(*, rounds: int, seconds: float, threads: int) -> dict[str, object]:
    """Return each round's frames/s, their medians, and the median over rounds of B's over A's."""
    found: dict[str, list[float]] = {track: [] for track in SPECS}
    for _ in range(rounds):
        for track, spec in SPECS.items():
            result = measure(
                sys.executable, "train_ours.py", GAME, seconds=seconds, threads=threads, spec=spec
            )
            found[track].append(speed(result))
            print(f"Track {track}: {found[track][-1]:,.0f} frames/s", file=sys.stderr)
    ratios = [b / a for a, b in zip(found["A"], found["B"], strict=True)]
    return {
        "frames_per_second": found,
        "median_frames_per_second": {track: statistics.median(speeds) for track, speeds in found.items()},
        "ratios_b_to_a": ratios,
        "median_ratio_b_to_a": statistics.median(ratios),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="JSON file to write")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=20.0, help="of each measurement")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="of torch")
    options = parser.parse_args()
    result = compare(rounds=options.rounds, seconds=options.seconds, threads=options.threads)
    settings = {**SETTINGS, "game": GAME, "seconds": options.seconds, "threads": options.threads}
    report = {"settings": settings, **circumstances(), **result}
    options.out.write_text(json.dumps(report, indent=2) + "\n")
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
