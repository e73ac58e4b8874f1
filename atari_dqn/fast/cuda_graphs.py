"""Functions of fixed tensors, captured in CUDA graphs and replayed.

An update of a small network is a hundred small kernels, and launching one takes the host longer than the GPU
needs to run it. A graph launches all of them at once (docs/decisions/0026-one-update-is-one-graph.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache

import torch
from torch import Tensor

_WARM_UP_TIMES = 3
"""In their first calls libraries create handles, select kernels and allocate memory; graphs may not."""


class CudaGraphs:
    """Captures a function in its first run and replays it from then on.

    There is a graph for each power of two up to `most_at_once`, which repeats the function that many times,
    so that any number of runs takes few launches.

    Capturing executes nothing, but the warm-up before it does: `unchanged` then restores the tensors that
    `mutated` lists and the states of `generators`.
    """

    def __init__(
        self,
        function: Callable[[], None],
        *,
        generators: Sequence[torch.Generator],
        mutated: Callable[[], list[Tensor]],
        most_at_once: int = 1,
    ) -> None:
        self._function, self._mutated = function, mutated
        self._generators = tuple(generators)
        self._sizes = tuple(powers_of_two(most_at_once))
        self._graphs: dict[int, torch.cuda.CUDAGraph] = {}

    def run(self, times: int = 1) -> None:
        """Run the function `times` times."""
        if not self._graphs:
            self._capture()
        for size in parts(times, self._sizes):
            self._graphs[size].replay()

    def forget(self) -> None:
        """Discard the graphs; the next run captures new ones."""
        self._graphs.clear()

    def _capture(self) -> None:
        stream = _capture_stream(torch.cuda.current_device())
        pool = torch.cuda.graph_pool_handle()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream), unchanged(self._mutated, self._generators):
            for _ in range(_WARM_UP_TIMES):
                self._function()
        torch.cuda.current_stream().wait_stream(stream)
        for size in self._sizes:
            graph = torch.cuda.CUDAGraph()
            for generator in self._generators:
                graph.register_generator_state(generator)
            # thread-local, because other threads write checkpoints and logs meanwhile
            with torch.cuda.graph(graph, pool=pool, stream=stream, capture_error_mode="thread_local"):
                for _ in range(size):
                    self._function()
            self._graphs[size] = graph


@cache
def _capture_stream(device_index: int) -> torch.cuda.Stream:
    """Return the stream of all captures: PyTorch keeps a cuBLAS workspace for every stream that was used."""
    return torch.cuda.Stream(device_index)  # type: ignore[no-untyped-call]


def powers_of_two(most: int) -> Iterator[int]:
    """Yield the powers of two up to `most`, the largest first."""
    assert most >= 1
    yield from (2**power for power in reversed(range(most.bit_length())))


def parts(times: int, sizes: Sequence[int]) -> Iterator[int]:
    """Yield sizes that add up to `times`, largest first; `sizes` must fall and end with 1."""
    for size in sizes:
        while times >= size:
            yield size
            times -= size


@contextmanager
def unchanged(mutated: Callable[[], list[Tensor]], generators: Sequence[torch.Generator]) -> Iterator[None]:
    """Restore tensors and generators at the end of the context.

    A tensor that was created in it, such as an optimizer's average, is set to 0, its initial value.
    """
    with torch.no_grad():
        before = [(tensor, tensor.clone()) for tensor in mutated()]
    states = [generator.get_state() for generator in generators]
    yield
    held = {id(tensor): values for tensor, values in before}
    with torch.no_grad():
        for tensor in mutated():
            values = held.get(id(tensor))
            tensor.zero_() if values is None else tensor.copy_(values)
    for generator, state in zip(generators, states, strict=True):
        generator.set_state(state)
