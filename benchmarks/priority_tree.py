"""Time the priority tree at several fan-outs: one sample and one update of a minibatch at 1,000,000 leaves.

A fan-out of 2 is the usual binary tree, in vector code. Prints a table and writes JSON to `--out`.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path

from atari_dqn.assembly.acceleration import make_backend
from atari_dqn.replay.priority_tree import PriorityTree
from hardware import circumstances

import torch

CPU = torch.device("cpu")
LEAVES = 1_000_000
BATCH = 32
FAN_OUTS = (2, 8, 16, 32, 64, 128, 1024)
REPEATS = 300


def median_microseconds(function: Callable[[], object]) -> float:
    seconds = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - began)
    return sorted(seconds)[REPEATS // 2] * 1e6


def measure(fan_out: int, generator: torch.Generator) -> dict[str, float]:
    kind = type(make_backend(CPU).priority_tree(1, device=CPU))
    tree: PriorityTree = kind(LEAVES, device=CPU, fan_out=fan_out)
    priorities = torch.rand(LEAVES, generator=generator, dtype=torch.float64)
    for cells in torch.arange(LEAVES).split(10_000):
        tree.set(cells, priorities[cells])
    cells = torch.randint(LEAVES, (BATCH,), generator=generator)
    fresh = torch.rand(BATCH, generator=generator, dtype=torch.float64)
    mass = torch.rand(BATCH, generator=generator, dtype=torch.float64) * tree.total
    return {
        "fan_out": fan_out,
        "levels": len(tree.sums),
        "find_us": median_microseconds(lambda: tree.find(mass)),
        "set_us": median_microseconds(lambda: tree.set(cells, fresh)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    out = parser.parse_args().out
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(0)
    rows = [measure(fan_out, generator) for fan_out in FAN_OUTS]
    for row in rows:
        print("  ".join(f"{name} {value:7.0f}" for name, value in row.items()))
    out.write_text(json.dumps({"rows": rows, **circumstances()}, indent=2) + "\n")


if __name__ == "__main__":
    main()
