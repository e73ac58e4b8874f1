"""Work of fixed shapes on fixed tensors, captured in CUDA graphs and played again.

An update of a small network is a hundred small kernels, and asking for each takes the host longer than the
GPU needs to run it. A graph asks for all of them at once (docs/decisions/0026-one-update-is-one-graph.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor

_WARM_UP_TIMES = 3
"""Libraries make their handles, choose kernels and take memory in the first calls; no graph may hold that."""


class CudaGraphs:
    """Captures the work when it is first asked for, and plays it again from then on.

    Several times at once are one graph: there is one of each power of two up to `most_at_once`, so that a
    number of times is played with few launches and none of the host's work between them.

    Capturing executes nothing. The warm-up before it does, and `unchanged` puts back what that wrote: the
    tensors that `mutated` lists, and the places of `generators`.
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
        """Play it so many times."""
        if not self._graphs:
            self._capture()
        for size in parts(times, self._sizes):
            self._graphs[size].replay()

    def forget(self) -> None:
        """Capture anew at the next run."""
        self._graphs.clear()

    def _capture(self) -> None:
        stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
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
            # other threads write checkpoints and logs meanwhile: only this one must keep to what is allowed
            with torch.cuda.graph(graph, pool=pool, stream=stream, capture_error_mode="thread_local"):
                for _ in range(size):
                    self._function()
            self._graphs[size] = graph


def powers_of_two(most: int) -> Iterator[int]:
    """Yield the powers of two up to `most`, the largest first."""
    assert most >= 1
    yield from (2**power for power in reversed(range(most.bit_length())))


def parts(times: int, sizes: Sequence[int]) -> Iterator[int]:
    """Yield sizes that add up to `times`, the largest first. Sizes fall, and 1 is the last."""
    for size in sizes:
        while times >= size:
            yield size
            times -= size


@contextmanager
def unchanged(mutated: Callable[[], list[Tensor]], generators: Sequence[torch.Generator]) -> Iterator[None]:
    """Put back, when the context ends, what the tensors held and where the generators were.

    A tensor that came into being meanwhile, an optimizer's average, is set to 0, as it begins.
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
