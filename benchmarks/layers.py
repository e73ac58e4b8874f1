"""A layer's forward and backward pass: as the program computes it, through oneDNN, and by PyTorch alone.

The minibatch is 32. A pass rounds the weight once and has no gradients before it, as one in an update; rounds
take turns. "ours" and "onednn" differ in fp32 alone, where the program takes the quicker library.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from hardware import circumstances
from torch import Tensor, nn
from torch.nn import functional as F

from atari_dqn.agents.convolution import Convolution
from atari_dqn.agents.linear import QuickLinear

CALLS = 100
WAYS = ("ours", "onednn", "pytorch")


@dataclass(frozen=True)
class Layer:
    """A layer, the same by PyTorch's own functions, and what it is shown."""

    ours: nn.Module
    pytorch: Callable[[Tensor], Tensor]
    x: Tensor


def hidden(dtype: torch.dtype) -> Layer:
    """Return the Nature network's largest layer."""
    layer = QuickLinear(3_136, 512)

    def pytorch(x: Tensor) -> Tensor:
        return F.linear(x, layer.weight.to(dtype), layer.bias.to(dtype))

    return Layer(layer, pytorch, torch.randn(32, 3_136, dtype=dtype))


def second_convolution(dtype: torch.dtype) -> Layer:
    """Return the data-efficient network's layer whose kernels do not overlap."""
    layer = nn.Sequential(Convolution(32, 64, 5, 5, relu=True))
    layer.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    weight, bias = layer.parameters()

    def pytorch(x: Tensor) -> Tensor:
        return F.relu(F.conv2d(x, weight.to(dtype), bias.to(dtype), (5, 5)))

    x = torch.randn(32, 32, 16, 16, dtype=dtype).to(memory_format=torch.channels_last)
    return Layer(layer, pytorch, x)


LAYERS = {"hidden": hidden, "second_convolution": second_convolution}
FORMATS = {"fp32": torch.float32, "bf16": torch.bfloat16}


def way_of(name: str) -> AbstractContextManager[object]:
    """Have fp32 products go through oneDNN meanwhile, if `name` says so."""
    if name != "onednn":
        return nullcontext()
    return patch("atari_dqn.agents.linear.has_quick_fp32_products", lambda: False)


def milliseconds(layer: Layer, way: str, x: Tensor, upstream: Tensor) -> float:
    """Return the time of one forward and backward pass."""
    call = layer.pytorch if way == "pytorch" else layer.ours
    weights = list(layer.ours.parameters())
    with way_of(way):
        began = time.perf_counter()
        for _ in range(CALLS):
            for weight in weights:
                weight.grad = None
                torch.autograd.graph.increment_version(weight)  # as an optimizer's step does
            call(x).backward(upstream)
    return (time.perf_counter() - began) / CALLS * 1e3


def measured(layer: Layer, rounds: int) -> dict[str, Any]:
    """Return what each way takes."""
    x = layer.x.requires_grad_()
    upstream = torch.ones_like(layer.pytorch(x))
    times = [{way: milliseconds(layer, way, x, upstream) for way in WAYS} for _ in range(1 + rounds)][1:]
    return {
        "rounds_milliseconds": times,
        "median_milliseconds": {way: statistics.median(row[way] for row in times) for way in WAYS},
        "ours_times_as_fast_as": {
            way: statistics.median(row[way] / row["ours"] for row in times) for way in WAYS if way != "ours"
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="JSON file to write")
    parser.add_argument("--rounds", type=int, default=9, help="after one that is not counted")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    layers = {
        f"{name}, {precision}": measured(make(dtype), options.rounds)
        for name, make in LAYERS.items()
        for precision, dtype in FORMATS.items()
    }
    settings = {"batch": 32, "threads": options.threads, "rounds": options.rounds, "calls": CALLS}
    report = {**circumstances(), "settings": settings, "layers": layers}
    options.out.write_text(json.dumps(report, indent=2) + "\n")
    print(json.dumps({name: row["ours_times_as_fast_as"] for name, row in layers.items()}, indent=2))


if __name__ == "__main__":
    main()
