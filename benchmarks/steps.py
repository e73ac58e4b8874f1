"""From what a hidden layer's gradient is made of to the next weights: the gradient written, and not.

Minibatch 32, 3,136 inputs, fp32. "written" is the gradient's product, its norm and the optimizer's step:
three passes over memory. "factored" is the norm by its two sides and the step that makes it. Between calls
as much memory is moved as an update moves elsewhere, so that no cache has what a call wants; ways take turns.
Needs the compiled kernels of products.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import atari_dqn.fast.cpu.products  # noqa: F401  torch's operators of ours
from atari_dqn.agent.optimizers import adam, deepmind_rmsprop
from atari_dqn.fast.cpu.factored import FactoredGradient
from atari_dqn.fast.cpu.library import unit_for
from atari_dqn.fast.optimizers import accelerate_optimizer, gradient_norm
from atari_dqn.machine.allocator import keep_freed_memory
from hardware import circumstances

import torch
from torch import nn

BATCH, INPUTS = 32, 3_136
LAYERS = {"hidden": (512, False), "hidden, dueling": (1_024, False), "hidden, dueling, noisy": (1_024, True)}
OPTIMIZERS: dict[str, Callable[[list[nn.Parameter]], Any]] = {
    "deepmind_rmsprop": partial(
        deepmind_rmsprop, learning_rate=1e-5, epsilon=0.01, gradient_decay=0.95, squared_gradient_decay=0.95
    ),
    "adam": partial(adam, learning_rate=1e-5, beta1=0.9, beta2=0.999, epsilon=1e-8),
}
ELSEWHERE_BYTES = 80_000_000


class Step:
    """A layer's weights, its optimizer and the two sides of its gradient."""

    def __init__(self, optimizer: str, outputs: int, noisy: bool) -> None:
        weights = [nn.Parameter(torch.randn(outputs, INPUTS) / 100) for _ in range(1 + noisy)]
        other = nn.Parameter(torch.ones(outputs))
        other.grad = torch.ones(outputs)
        self.optimizer = OPTIMIZERS[optimizer]([*weights, other])
        assert accelerate_optimizer(self.optimizer)
        noise = (torch.randn(INPUTS), torch.randn(outputs)) if noisy else None
        x, upstream = torch.randn(BATCH, INPUTS).relu(), torch.randn(BATCH, outputs)
        self.gradient, self.other = FactoredGradient(tuple(weights), x, upstream, noise), other

    def written(self) -> None:
        """Write the gradient, read it for its norm, and step by it."""
        gradient, weights = self.gradient, self.gradient.weights
        sides = gradient.upstream, gradient.x
        if gradient.noise is None:
            found = torch.ops.atari_dqn.multiply_backward(*sides, weights[0].detach(), False)
        else:
            means = [weight.detach() for weight in weights]
            found = torch.ops.atari_dqn.multiply_noisy_backward(*sides, *means, *gradient.noise, False)
        for weight, of_weight in zip(weights, found[1:], strict=False):
            weight.grad = of_weight
        gradient_norm([weight.grad for weight in (*weights, self.other) if weight.grad is not None])
        self.optimizer.step()
        for weight in weights:
            weight.grad = None

    def factored(self) -> None:
        """Do the same without writing it."""
        self.optimizer.unwritten[:] = [self.gradient]
        gradient_norm([self.other.detach()], self.optimizer.unwritten)
        self.optimizer.step()
        self.optimizer.unwritten.clear()


def milliseconds(work: Callable[[], None], elsewhere: torch.Tensor) -> float:
    """Time one call in milliseconds."""
    elsewhere.add_(1.0)
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1e3


def measured(optimizer: str, outputs: int, noisy: bool, calls: int) -> dict[str, float]:
    """Return the median of either way, in milliseconds, and how they compare."""
    step, elsewhere = Step(optimizer, outputs, noisy), torch.zeros(ELSEWHERE_BYTES // 4)
    rows = [
        (milliseconds(step.written, elsewhere), milliseconds(step.factored, elsewhere))
        for _ in range(5 + calls)
    ][5:]
    written, factored = (statistics.median(column) for column in zip(*rows, strict=True))
    ratio = statistics.median(one / other for one, other in rows)
    return {"written_milliseconds": written, "factored_milliseconds": factored, "times_as_fast": ratio}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="JSON file to write")
    parser.add_argument("--calls", type=int, default=100)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    options = parser.parse_args()
    if unit_for(torch.float32) is None:
        parser.error("needs the compiled kernels of products, which this installation or processor has not")
    torch.set_num_threads(options.threads)
    keep_freed_memory()
    steps = {
        f"{layer}, {optimizer}": measured(optimizer, outputs, noisy, options.calls)
        for layer, (outputs, noisy) in LAYERS.items()
        for optimizer in OPTIMIZERS
    }
    settings = {"batch": BATCH, "threads": options.threads, "calls": options.calls}
    report = {**circumstances(), "settings": settings, "steps": steps}
    options.out.write_text(json.dumps(report, indent=2) + "\n")
    print(json.dumps(steps, indent=2))


if __name__ == "__main__":
    main()
