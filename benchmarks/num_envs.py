"""What more environments give and cost: Track A on Pong, 1 to 128 environments, the learning rule fixed.

Updates per agent step, batch, target period, ε and replay are the same whatever the number of environments,
so that every row learns from as many samples per frame. What changes: one forward pass chooses for all
environments, and emulators play side by side while the iteration's updates are done. Environment counts take
turns. Reported with the frames/s are the milliseconds per agent step of choosing actions, of waiting for
the emulators and of learning.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
from pathlib import Path
from typing import Any

from contender import SETTINGS, Contender, measure
from hardware import circumstances
from tracks import ours

ENVS = (1, 8, 16, 64, 128)
FRAME_SKIP = 4
PARTS = {"act": "acting", "emulate": "waiting for emulators", "learn": "learning", "optimize": "optimizer"}


def contender(spec: str, envs: int, *, workers: int, precision: str) -> Contender:
    """Return a spec on as many environments; a single one is always played in the learner's own process."""
    own = workers if envs > 1 else 0
    return ours(spec, f"system.workers={own}", f"learner.precision={precision}", envs=envs)


def row(results: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the medians over rounds of one number of environments."""
    seconds_per_step = [FRAME_SKIP / each["frames_per_second"] for each in results]
    return {
        "frames_per_second": statistics.median(each["frames_per_second"] for each in results),
        "updates_per_second": statistics.median(each["updates_per_second"] for each in results),
        "workers": results[0]["workers"],
        "milliseconds_per_step": {
            part: statistics.median(
                each["shares"][part] * seconds * 1e3
                for each, seconds in zip(results, seconds_per_step, strict=True)
            )
            for part in results[0]["shares"]
        },
    }


def table(rows: dict[int, dict[str, Any]]) -> str:
    """Return the rows as Markdown; the unit of a part is milliseconds per agent step."""
    first = rows[min(rows)]["frames_per_second"]
    heads = ["envs", "workers", "frames/s", f"× {min(rows)} environment", *PARTS.values()]
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for envs, found in rows.items():
        parts = [f"{found['milliseconds_per_step'][part]:.2f}" for part in PARTS]
        speed = found["frames_per_second"]
        cells = [str(envs), str(found["workers"]), f"{speed:,.0f}", f"{speed / first:.2f}", *parts]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, help="JSON file to write")
    parser.add_argument("--spec", default="pong_trackA.toml", help="file in runs/")
    parser.add_argument("--envs", type=int, nargs="+", default=ENVS)
    parser.add_argument(
        "--workers", type=int, default=0, help="emulating processes, with more than one environment"
    )
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="fp32")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=10.0, help="of each measurement")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="of torch")
    options = parser.parse_args()
    contenders = {
        envs: contender(options.spec, envs, workers=options.workers, precision=options.precision)
        for envs in options.envs
    }
    found: dict[int, list[dict[str, Any]]] = {envs: [] for envs in contenders}
    for _ in range(options.rounds):
        for envs, each in contenders.items():
            found[envs].append(measure(each, seconds=options.seconds, threads=options.threads))
            print(f"{envs}: {found[envs][-1]['frames_per_second']:,.0f} frames/s", file=sys.stderr)
    rows = {envs: row(results) for envs, results in found.items()}
    settings = {
        **SETTINGS,
        **{name: getattr(options, name) for name in ("spec", "workers", "precision", "seconds", "threads")},
    }
    report = {"settings": settings, **circumstances(), "envs": rows, "rounds": found}
    options.out.write_text(json.dumps(report, indent=2) + "\n")
    print(table(rows))


if __name__ == "__main__":
    main()
