"""The convolutions of this version's kernels and of an earlier one's, in one process, call by call in turns.

    git worktree add ../earlier COMMIT && (cd ../earlier && python setup.py build_ext --inplace)
    python benchmarks/convolutions.py --earlier ../earlier --out FILE [--games GAME ...]

One thread computes a minibatch of 32 in fp32, forward and backward, of bytes that are drawn or, with --games,
of states of random play, since it depends on the frames how many patches the kernels multiply. A change of a
few per cent shows, also on a machine whose speed varies by more from one minute to the next. Reports which
share of the first layer's patches differ from those on their left and above, whether outputs are equal to the
bit, and by what part of the largest number gradients differ; ends with exit code 1 if an output differs, or a
gradient by more than rounding. The earlier version's kernels must take the same arguments.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from atari_dqn.fast.cpu.library import INSTRUCTION_SETS, integers, pointers
from hardware import circumstances
from random_play import play

import numpy as np
import torch
from torch import Tensor

HERE = Path(__file__).parents[1]
BATCH = 32
ROUNDS = 150
STATES_APART = 8
"""Steps between two states of a minibatch."""
ROUNDING = 1e-5
"""Largest difference of two gradients, as a part of the largest number."""
# Of each layer: height, width, channels, height and width of the kernel, stride, zeros above, below, left and
# right, filters.
STACKS: dict[str, list[tuple[int, ...]]] = {
    "nature": [
        (84, 84, 4, 8, 8, 4, 0, 0, 0, 0, 32),
        (20, 20, 32, 4, 4, 2, 0, 0, 0, 0, 64),
        (9, 9, 64, 3, 3, 1, 0, 0, 0, 0, 64),
    ],
    "dopamine": [
        (84, 84, 4, 8, 8, 4, 2, 2, 2, 2, 32),
        (21, 21, 32, 4, 4, 2, 1, 2, 1, 2, 64),
        (11, 11, 64, 3, 3, 1, 1, 1, 1, 1, 64),
    ],
    "data_efficient": [(84, 84, 4, 5, 5, 5, 0, 0, 0, 0, 32), (16, 16, 32, 5, 5, 5, 0, 0, 0, 0, 64)],
}
FP32_VECTORS, BYTES, IN_PLANES = 0, 0, 1


class Stack:
    """A stack of convolutions, its minibatch, and what a library makes of both."""

    def __init__(self, layers: list[tuple[int, ...]], frames: Tensor) -> None:
        self.frames = frames
        self.shapes, self.count = integers([n for layer in layers for n in (BATCH, *layer)]), len(layers)
        self.weights = [torch.randn(n[10], n[3], n[4], n[2]) / 20 for n in layers]
        self.biases = [torch.randn(n[10]) / 10 for n in layers]
        self.outputs = [torch.zeros(BATCH, *output_size(*layer)) for layer in layers]
        self.encoded, self.upstream = torch.zeros_like(self.outputs[-1]), torch.randn(self.outputs[-1].shape)
        self.gradients = [[torch.zeros_like(each) for each in some] for some in (self.weights, self.biases)]

    def forward(self, library: ctypes.CDLL) -> None:
        library.encode(
            FP32_VECTORS, at(self.frames), BYTES, IN_PLANES, self.shapes, ctypes.c_int64(self.count),
            pointers(self.weights), pointers(self.biases), pointers(self.outputs), at(self.encoded),
        )  # fmt: skip

    def backward(self, library: ctypes.CDLL) -> None:
        library.encode_backward(
            FP32_VECTORS, at(self.frames), BYTES, IN_PLANES, self.shapes, ctypes.c_int64(self.count),
            pointers(self.weights), pointers(self.outputs), at(self.encoded), at(self.upstream),
            *map(pointers, self.gradients),
        )  # fmt: skip

    def results(self) -> tuple[list[Tensor], list[Tensor]]:
        """Copy the outputs of all layers, and all gradients."""
        outputs = [each.clone() for each in (*self.outputs[:-1], self.encoded)]
        return outputs, [each.clone() for each in (*self.gradients[0], *self.gradients[1])]


def output_size(*layer: int) -> tuple[int, int, int]:
    height, width, _, kernel_height, kernel_width, stride, above, below, left, right, filters = layer
    return (
        (height + above + below - kernel_height) // stride + 1,
        (width + left + right - kernel_width) // stride + 1,
        filters,
    )


def at(tensor: Tensor) -> ctypes.c_void_p:
    return ctypes.c_void_p(tensor.data_ptr())


def seconds(call: Callable[[ctypes.CDLL], None], library: ctypes.CDLL, elsewhere: Tensor) -> float:
    """Time a call after 16 MB elsewhere were changed, so that caches hold little of the call before."""
    elsewhere.add_(1)
    began = time.perf_counter()
    call(library)
    return time.perf_counter() - began


def states(game: str | None) -> Tensor:
    """Return a minibatch of states, of a game or drawn: u8[B, 4, 84, 84]."""
    if game is None:
        return torch.randint(0, 256, (BATCH, 4, 84, 84), dtype=torch.uint8)
    frames = play(game, envs=1, steps=BATCH * STATES_APART + 4)[:, 0]
    return torch.from_numpy(np.stack([frames[STATES_APART * i :][:4] for i in range(1, BATCH + 1)]))


def share_that_differ(layer: tuple[int, ...], frames: Tensor) -> float:
    """Compute the share of patches that differ from the one on their left and from the one above."""
    _, _, _, kernel_height, kernel_width, stride, above, below, left, right, _ = layer
    padded = np.pad(frames.numpy(), ((0, 0), (0, 0), (above, below), (left, right)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (kernel_height, kernel_width), (2, 3))
    patches = windows[:, :, ::stride, ::stride].transpose(0, 2, 3, 1, 4, 5)
    differ = np.ones(patches.shape[:3], bool)
    differ[:, :, 1:] &= (patches[:, :, 1:] != patches[:, :, :-1]).any((3, 4, 5))
    differ[:, 1:] &= (patches[:, 1:] != patches[:, :-1]).any((3, 4, 5))
    return float(differ.mean())


def difference(found: Tensor, expected: Tensor) -> float:
    """Compute the largest difference as a part of the largest expected number."""
    return float((found - expected).abs().max() / expected.abs().max())


def measure(
    layers: list[tuple[int, ...]], frames: Tensor, libraries: dict[str, ctypes.CDLL]
) -> dict[str, Any]:
    stack, elsewhere = Stack(layers, frames), torch.zeros(4_000_000)
    times: dict[str, list[float]] = {
        f"{name}, {way}": [] for name in libraries for way in ("forward", "backward")
    }
    results: dict[str, tuple[list[Tensor], list[Tensor]]] = {}
    for place in range(ROUNDS):
        for name in sorted(libraries, reverse=place % 2 == 0):
            times[f"{name}, forward"].append(seconds(stack.forward, libraries[name], elsewhere))
            times[f"{name}, backward"].append(seconds(stack.backward, libraries[name], elsewhere))
            results[name] = stack.results()
    outputs, gradients = zip(results["here"], results["earlier"], strict=True)
    apart = np.max(list(map(difference, *gradients)))  # NaN if one is
    medians = {name: round(1e3 * statistics.median(found), 3) for name, found in times.items()}
    return {
        "median_milliseconds": medians,
        "outputs_equal": all(map(torch.equal, *outputs)),
        "largest_difference_of_gradients": float(apart),
        "share_of_patches_that_differ": round(share_that_differ(layers[0], frames), 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--earlier", type=Path, required=True, help="a checkout of the earlier version")
    parser.add_argument("--out", type=Path, required=True, help="JSON file to write")
    parser.add_argument("--games", nargs="+", metavar="GAME", help="play these, instead of drawing bytes")
    chosen = parser.parse_args()
    torch.manual_seed(0)
    screens = {game or "drawn": states(game) for game in chosen.games or [None]}
    found: dict[str, dict[str, dict[str, Any]]] = {}
    roots = {"here": HERE, "earlier": chosen.earlier.resolve()}
    for isa in INSTRUCTION_SETS:
        file = Path(f"atari_dqn/fast/cpu/_products_{isa}.so")
        if not all((root / file).exists() for root in roots.values()):
            continue
        libraries = {name: ctypes.CDLL(str(root / file)) for name, root in roots.items()}
        if not libraries["here"].units():
            continue
        found[isa] = {
            f"{name}, {screen}": measure(layers, frames, libraries)
            for name, layers in STACKS.items()
            for screen, frames in screens.items()
        }
        print(isa, json.dumps(found[isa], indent=1), flush=True)
    if not found:
        sys.exit("no compiled kernels of both versions for this processor")
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=chosen.earlier, check=True, capture_output=True, text=True
    ).stdout.strip()
    document = {"circumstances": circumstances(), "earlier": commit, "convolutions": found}
    chosen.out.write_text(json.dumps(document, indent=1) + "\n")
    measured = [each for stacks in found.values() for each in stacks.values()]
    sys.exit(
        not all(
            each["outputs_equal"] and each["largest_difference_of_gradients"] <= ROUNDING for each in measured
        )
    )


if __name__ == "__main__":
    main()
