"""Layers forward and backward: as the program computes them, through oneDNN, and by PyTorch alone.

The minibatch is 32. A pass rounds the weight once and has no gradients before it, as one in an update; rounds
take turns. "ours" is our own kernels where they fit, and else the quicker library; "onednn" is neither.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from hardware import circumstances
from torch import Tensor, nn
from torch.nn import functional as F

from atari_dqn.agent.linear import QuickLinear
from atari_dqn.agent.pixel_layout import channels_last
from atari_dqn.agent.torsos import ConvolutionalTorso, DataEfficientTorso, NatureTorso
from atari_dqn.fast.cpu.library import left_to_torch

CALLS = 100
WAYS = ("ours", "onednn", "pytorch")


@dataclass(frozen=True)
class Layer:
    """A layer or several, the same by PyTorch's own functions, and what they are shown."""

    ours: Callable[[Tensor], Tensor]
    pytorch: Callable[[Tensor], Tensor]
    x: Tensor
    weights: list[nn.Parameter]


def hidden(dtype: torch.dtype) -> Layer:
    """Return the Nature network's largest layer."""
    layer = QuickLinear(3_136, 512)

    def pytorch(x: Tensor) -> Tensor:
        return F.linear(x, layer.weight.to(dtype), layer.bias.to(dtype))

    x = torch.randn(32, 3_136, dtype=dtype).requires_grad_()
    return Layer(layer, pytorch, x, list(layer.parameters()))


def nature(dtype: torch.dtype) -> Layer:
    """Return the Nature network's convolutions."""
    return seen_by(NatureTorso(stack=4, frame_shape=(84, 84)), dtype)


def data_efficient(dtype: torch.dtype) -> Layer:
    """Return the data-efficient network's convolutions."""
    return seen_by(DataEfficientTorso(stack=4, frame_shape=(84, 84)), dtype)


def seen_by(torso: ConvolutionalTorso, dtype: torch.dtype) -> Layer:
    """Return a network's convolutions of bytes; PyTorch's own see them interleaved."""
    torso.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def ours(frames: Tensor) -> Tensor:
        taken = frames if torso.takes_bytes(frames, dtype) else torso.arrange(frames)
        return torso.see(taken, dtype)

    def pytorch(frames: Tensor) -> Tensor:
        x = channels_last(frames).to(dtype)
        for layer in torso.convolutions:
            weight, bias = layer.weight * layer.scale, layer.bias
            x = F.relu(F.conv2d(x, weight.to(dtype), bias.to(dtype), layer.stride))
        return x.flatten(1)

    x = torch.randint(0, 256, (32, 4, 84, 84), dtype=torch.uint8)
    return Layer(ours, pytorch, x, list(torso.convolutions.parameters()))


LAYERS = {"nature": nature, "hidden": hidden, "data_efficient": data_efficient}
FORMATS = {"fp32": torch.float32, "bf16": torch.bfloat16}


def way_of(name: str) -> ExitStack:
    """Have all go through oneDNN meanwhile, if `name` says so."""
    way = ExitStack()
    if name == "onednn":
        way.enter_context(patch("atari_dqn.agent.linear.has_quick_fp32_products", lambda: False))
        way.enter_context(left_to_torch())
    return way


def milliseconds(layer: Layer, way: str, upstream: Tensor) -> float:
    """Return the time of one forward and backward pass."""
    call = layer.pytorch if way == "pytorch" else layer.ours
    with way_of(way):
        began = time.perf_counter()
        for _ in range(CALLS):
            for weight in layer.weights:
                weight.grad = None
                torch.autograd.graph.increment_version(weight)  # as an optimizer's step does
            call(layer.x).backward(upstream)
    return (time.perf_counter() - began) / CALLS * 1e3


def measured(layer: Layer, rounds: int) -> dict[str, Any]:
    """Return what each way takes."""
    upstream = torch.ones_like(layer.pytorch(layer.x))
    times = [{way: milliseconds(layer, way, upstream) for way in WAYS} for _ in range(1 + rounds)][1:]
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
