"""The three products of a fully connected layer's update: through oneDNN, and as PyTorch sends them.

The layer is the Nature network's largest, 3,136 to 512, the minibatch 32, precision fp32. Rounds take turns.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch
from hardware import circumstances
from torch import Tensor
from torch.nn import functional as F

from atari_dqn.agents.linear import OneDnnLinear

BATCH, FEATURES, UNITS = 32, 3_136, 512
CALLS = 100


def milliseconds(layer: Callable[[Tensor], Tensor], x: Tensor, upstream: Tensor) -> float:
    """Return the time of one forward and backward pass."""
    began = time.perf_counter()
    for _ in range(CALLS):
        layer(x).backward(upstream)
    return (time.perf_counter() - began) / CALLS * 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="JSON file to write")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    layer = OneDnnLinear(FEATURES, UNITS)
    x, upstream = torch.randn(BATCH, FEATURES, requires_grad=True), torch.randn(BATCH, UNITS)
    ways = {"onednn": layer, "pytorch": lambda x: F.linear(x, layer.weight, layer.bias)}
    rounds = [
        {name: milliseconds(way, x, upstream) for name, way in ways.items()} for _ in range(options.rounds)
    ]
    medians = {name: statistics.median(times[name] for times in rounds) for name in ways}
    report = {
        **circumstances(),
        "settings": {"batch": BATCH, "features": FEATURES, "units": UNITS, "threads": options.threads},
        "rounds_milliseconds": rounds,
        "median_milliseconds": medians,
        "median_ratio": medians["pytorch"] / medians["onednn"],
    }
    options.out.write_text(json.dumps(report, indent=2) + "\n")
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
