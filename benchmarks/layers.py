"""A layer's forward and backward pass: as the program computes it, and as PyTorch's own functions do.

The minibatch is 32. Rounds take turns.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from hardware import circumstances
from torch import Tensor, nn
from torch.nn import functional as F

from atari_dqn.agents.convolution import Convolution
from atari_dqn.agents.linear import OneDnnLinear

CALLS = 100
Way = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Layer:
    """A layer, what it is shown, and PyTorch's own way."""

    ours: nn.Module
    pytorch: Way
    x: Tensor

    def ways(self) -> dict[str, Way]:
        """Return both ways by name."""
        return {"ours": self.ours, "pytorch": self.pytorch}


def hidden(dtype: torch.dtype) -> Layer:
    """Return the Nature network's largest layer."""
    layer = OneDnnLinear(3_136, 512)
    return Layer(
        layer,
        lambda x: F.linear(x, layer.weight.to(dtype), layer.bias.to(dtype)),
        torch.randn(32, 3_136, dtype=dtype),
    )


def second_convolution(dtype: torch.dtype) -> Layer:
    """Return the data-efficient network's layer whose kernels do not overlap."""
    layer = Convolution(32, 64, 5, 5, relu=True)
    layer.weight.data = layer.weight.data.to(memory_format=torch.channels_last)
    assert layer.bias is not None
    bias = layer.bias
    return Layer(
        layer,
        lambda x: F.relu(F.conv2d(x, layer.weight.to(dtype), bias.to(dtype), layer.stride)),
        torch.randn(32, 32, 16, 16, dtype=dtype).to(memory_format=torch.channels_last),
    )


LAYERS = {"hidden": hidden, "second_convolution": second_convolution}
FORMATS = {"fp32": torch.float32, "bf16": torch.bfloat16}


def milliseconds(way: Way, x: Tensor, upstream: Tensor) -> float:
    """Return the time of one forward and backward pass."""
    began = time.perf_counter()
    for _ in range(CALLS):
        way(x).backward(upstream)  # type: ignore[no-untyped-call]
    return (time.perf_counter() - began) / CALLS * 1e3


def measured(layer: Layer, rounds: int) -> dict[str, Any]:
    """Return what both ways take."""
    x = layer.x.requires_grad_()
    upstream = torch.ones_like(layer.pytorch(x))
    times = [
        {name: milliseconds(way, x, upstream) for name, way in layer.ways().items()} for _ in range(rounds)
    ]
    return {
        "rounds_milliseconds": times,
        "median_milliseconds": {name: statistics.median(row[name] for row in times) for name in times[0]},
        "median_ratio": statistics.median(row["pytorch"] / row["ours"] for row in times),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="JSON file to write")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    layers = {
        f"{name}, {precision}": measured(make(dtype), options.rounds)
        for name, make in LAYERS.items()
        for precision, dtype in FORMATS.items()
    }
    settings = {"batch": 32, "threads": options.threads}
    report = {**circumstances(), "settings": settings, "layers": layers}
    options.out.write_text(json.dumps(report, indent=2) + "\n")
    print(json.dumps({name: row["median_ratio"] for name, row in layers.items()}, indent=2))


if __name__ == "__main__":
    main()
