"""Convolutions forward and backward: accelerated, and by PyTorch alone.

The minibatch is 32. A pass converts the weight once and has no gradients before it, as one in an update;
rounds take turns. "ours" is our own kernels where they fit.
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

from atari_dqn.agent.heads import LinearHead
from atari_dqn.agent.network import QNetwork
from atari_dqn.agent.torsos import ConvolutionalTorso, DataEfficientTorso, NatureTorso
from atari_dqn.assembly.acceleration import make_backend
from hardware import circumstances

import torch
from torch import Tensor, nn

CALLS = 100
WAYS = ("ours", "pytorch")
CPU = torch.device("cpu")


@dataclass(frozen=True)
class Layer:
    """A layer or several by each way, their input and their weights."""

    ways: dict[str, Callable[[Tensor], Tensor]]
    x: Tensor
    weights: list[nn.Parameter]


def networks(torso: type[ConvolutionalTorso], dtype: torch.dtype) -> dict[str, QNetwork]:
    """Make a network by each way."""
    made = {}
    for way in WAYS:
        of = torso(stack=4, frame_shape=(84, 84))
        precision = "bf16" if dtype is torch.bfloat16 else "fp32"
        made[way] = QNetwork(of, LinearHead(of.num_features, 6), precision=precision)
    make_backend(CPU, fuse=False).network(made["ours"])
    return made


def nature(dtype: torch.dtype) -> Layer:
    """Make the Nature network's convolutions."""
    return encoder(NatureTorso, dtype)


def data_efficient(dtype: torch.dtype) -> Layer:
    """Make the data-efficient network's convolutions."""
    return encoder(DataEfficientTorso, dtype)


def encoder(torso: type[ConvolutionalTorso], dtype: torch.dtype) -> Layer:
    """Make a network's convolutions of bytes."""
    x = torch.randint(0, 256, (32, 4, 84, 84), dtype=torch.uint8)
    made = networks(torso, dtype)
    return layer_of({way: (network, network.torso.encode) for way, network in made.items()}, x)


def layer_of(parts: dict[str, tuple[QNetwork, Callable[[Tensor], Tensor]]], x: Tensor) -> Layer:
    """Have each part compute in its network's precision."""

    def computed(network: QNetwork, part: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
        def compute(x: Tensor) -> Tensor:
            with network.torso_precision(x):
                return part(x)

        return compute

    weights = [weight for network, _ in parts.values() for weight in network.parameters()]
    return Layer({way: computed(*each) for way, each in parts.items()}, x, weights)


LAYERS = {"nature": nature, "data_efficient": data_efficient}
FORMATS = {"fp32": torch.float32, "bf16": torch.bfloat16}


def milliseconds(layer: Layer, way: str, upstream: Tensor) -> float:
    """Return the time of one forward and backward pass."""
    began = time.perf_counter()
    for _ in range(CALLS):
        for weight in layer.weights:
            weight.grad = None
            torch.autograd.graph.increment_version(weight)  # as an optimizer's step does
        layer.ways[way](layer.x).backward(upstream)
    return (time.perf_counter() - began) / CALLS * 1e3


def measured(layer: Layer, rounds: int) -> dict[str, Any]:
    """Measure the milliseconds of each way."""
    upstream = torch.ones_like(layer.ways["pytorch"](layer.x))
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
