"""One prioritized sampler, timed: `prioritized.py` runs this. Imports only what the system named needs."""

import bisect
import json
import random
import sys
import time
from collections.abc import Callable
from typing import Any

import torch

LEAVES = 1_000_000
BATCH = 32
FEW = 1_000
ALPHA, BETA, OFFSET = 0.6, 0.4, 1e-6
WARM_UP, REPEATS = 30, 300

Draw = Callable[[], object]
Update = Callable[[Any, torch.Tensor], None]


def ours() -> tuple[Draw, Update]:
    from atari_dqn.assembly.acceleration import make_backend
    from atari_dqn.replay.prioritized import PrioritizedSampler
    from atari_dqn.schedule import LinearSchedule

    cpu = torch.device("cpu")
    sampler = PrioritizedSampler(
        capacity=LEAVES, batch_size=BATCH, alpha=ALPHA,
        beta=LinearSchedule(start=BETA, end=1.0, decay_frames=10**9), priority_offset=OFFSET, seed=0,
        device=cpu, make_tree=make_backend(cpu).priority_tree,
    )  # fmt: skip
    leaves, errors = torch.arange(LEAVES), first_errors()
    sampler.add(leaves)
    for few in leaves.split(FEW):  # an update compares every pair of its indices
        sampler.update_priorities(few, errors[few])

    def draw() -> torch.Tensor:
        sampler.prepare(0)
        return sampler.draw()[0]

    return draw, sampler.update_priorities


class LoopTree:
    """The usual binary sum tree in a Python list, with a minimum tree, walked leaf by leaf."""

    def __init__(self, priorities: list[float]) -> None:
        self.size = 1 << (len(priorities) - 1).bit_length()
        padding = self.size - len(priorities)
        self.sums = [0.0] * self.size + priorities + [0.0] * padding
        self.minima = [0.0] * self.size + priorities + [float("inf")] * padding
        for node in range(self.size - 1, 0, -1):
            self._renew(node)

    def set(self, leaf: int, priority: float) -> None:
        node = leaf + self.size
        self.sums[node] = self.minima[node] = priority
        while node > 1:
            node //= 2
            self._renew(node)

    def find(self, mass: float) -> int:
        node = 1
        while node < self.size:
            node *= 2
            if mass >= self.sums[node]:
                mass -= self.sums[node]
                node += 1
        return node - self.size

    def _renew(self, node: int) -> None:
        self.sums[node] = self.sums[2 * node] + self.sums[2 * node + 1]
        self.minima[node] = min(self.minima[2 * node], self.minima[2 * node + 1])


def python_loop() -> tuple[Draw, Update]:
    tree = LoopTree((first_errors().double() + OFFSET).pow(ALPHA).tolist())
    stream = random.Random(0)

    def draw() -> list[int]:
        stratum = tree.sums[1] / BATCH
        cells = [tree.find((place + stream.random()) * stratum) for place in range(BATCH)]
        weights = [(tree.sums[cell + tree.size] / tree.minima[1]) ** -BETA for cell in cells]
        torch.tensor(weights)
        return cells

    def update(cells: list[int], errors: torch.Tensor) -> None:
        for cell, error in zip(cells, errors.tolist(), strict=True):
            tree.set(cell, (error + OFFSET) ** ALPHA)

    return draw, update


def tianshou() -> tuple[Draw, Update]:
    """Its compiled binary tree and the formulas of its buffer, with the least priority ever seen."""
    import numpy as np
    from tianshou.data import SegmentTree

    tree, stream, strata = SegmentTree(LEAVES), np.random.default_rng(0), np.arange(BATCH)
    tree[np.arange(LEAVES)] = (first_errors().double().numpy() + OFFSET) ** ALPHA
    smallest = float(tree[np.arange(LEAVES)].min())

    def draw() -> object:
        cells = tree.get_prefix_sum_idx((strata + stream.random(BATCH)) * (tree.reduce() / BATCH))
        torch.from_numpy((tree[cells] / smallest) ** -BETA)
        return cells

    def update(cells: object, errors: torch.Tensor) -> None:
        nonlocal smallest
        priorities = (errors.double().numpy() + OFFSET) ** ALPHA
        tree[cells] = priorities
        smallest = min(smallest, float(priorities.min()))

    return draw, update


def first_errors() -> torch.Tensor:
    return torch.rand(LEAVES, generator=torch.Generator().manual_seed(1))


SYSTEMS = {"ours": ours, "python_loop": python_loop, "tianshou": tianshou}


def median_milliseconds(function: Callable[[], object], repeats: int = REPEATS) -> float:
    seconds: list[float] = []
    for _ in range(repeats):
        began = time.perf_counter()
        function()
        bisect.insort(seconds, time.perf_counter() - began)
    return 1_000 * seconds[repeats // 2]


def timed(draw: Draw, update: Update) -> dict[str, float]:
    """Return the medians of a draw, of an update of what was drawn, and of both together."""
    errors = torch.rand(BATCH, generator=torch.Generator().manual_seed(2))
    for _ in range(WARM_UP):
        update(draw(), errors)
    cells = draw()
    return {
        "draw_ms": median_milliseconds(draw),
        "update_ms": median_milliseconds(lambda: update(cells, errors)),
        "together_ms": median_milliseconds(lambda: update(draw(), errors)),
    }


if __name__ == "__main__":
    torch.set_num_threads(int(sys.argv[2]))
    print(json.dumps(timed(*SYSTEMS[sys.argv[1]]())))
