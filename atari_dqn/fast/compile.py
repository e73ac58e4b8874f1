"""Work that PyTorch compiles into few large kernels. Ansel et al. (2024), "PyTorch 2".

An update is a hundred and more small operations, and asking for each takes a CPU about as long as doing it.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from atari_dqn.agent.actor import Actor
from atari_dqn.agent.random_draws import Rng, normal, uniform
from atari_dqn.errors import UserError
from atari_dqn.machine.hardware import compiler_name, has_compiler

_KERNELS = "TORCHINDUCTOR_CACHE_DIR"
"""Where PyTorch keeps kernels. It sets this by itself, as soon as it is imported."""
_ALONE: dict[str, Any] = {"isolate_recompiles": True}
"""PyTorch limits how often work is compiled: for each piece by itself, in versions that can."""


@contextmanager
def compiling() -> Iterator[None]:
    """Have a block make compiled work and call it once; a `UserError` where that cannot be done.

    Kernels are kept among the user's own files: PyTorch loads what it finds, and its default is a folder
    that anybody on the machine can make.
    """
    if not has_compiler():
        raise UserError(
            f"learner.compile is true, but the C++ compiler {compiler_name()!r} is not here; install it, "
            f"name another in CXX, or set learner.compile to false"
        )
    from torch._dynamo.exc import TorchDynamoException  # both take a second to import
    from torch._inductor.runtime.cache_dir_utils import default_cache_dir

    if os.environ.get(_KERNELS, default_cache_dir()) == default_cache_dir():
        caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        os.environ[_KERNELS] = str(caches / "atari_dqn" / "kernels")
    try:
        yield
    except TorchDynamoException as error:
        raise UserError(
            f"PyTorch could not compile: {_reason(error)}; learner.compile = false does without"
        ) from error


def _reason(error: Exception) -> str:
    """Return what went wrong, without the story around it: the backend's own error, where it is that."""
    inner = getattr(error, "inner_exception", error)
    lines = str(inner).split("\n")
    return next((line for line in lines if line.strip()), type(inner).__name__)


class RecordedDraw(NamedTuple):
    """One draw of random numbers: `normal` from N(0, 1) or `uniform` from [0, 1)."""

    kind: str
    shape: tuple[int, ...]

    def drawn(self, generator: torch.Generator) -> Tensor:
        """Draw the numbers from a stream, on its device."""
        return (normal if self.kind == "normal" else uniform)(generator, *self.shape)


class DrawRecorder:
    """Records what work draws, and draws nothing."""

    def __init__(self, device: torch.device) -> None:
        self.draws: list[RecordedDraw] = []
        self._device = device

    def normal(self, *shape: int) -> Tensor:
        """Record the draw; give zeros in its place."""
        return self._record("normal", shape)

    def uniform(self, *shape: int) -> Tensor:
        """Record the draw; give zeros in its place."""
        return self._record("uniform", shape)

    def _record(self, kind: str, shape: tuple[int, ...]) -> Tensor:
        self.draws.append(RecordedDraw(kind, shape))
        return torch.zeros(shape, device=self._device)


class DrawnAhead:
    """Gives out numbers that were drawn before, in order."""

    def __init__(self, numbers: Iterable[Tensor]) -> None:
        self._numbers = list(numbers)
        self._given = 0

    @property
    def left(self) -> int:
        """How many draws were not asked for yet."""
        return len(self._numbers) - self._given

    def normal(self, *shape: int) -> Tensor:
        """Give the next numbers."""
        return self._next(shape)

    def uniform(self, *shape: int) -> Tensor:
        """Give the next numbers."""
        return self._next(shape)

    def _next(self, shape: tuple[int, ...]) -> Tensor:
        numbers = self._numbers[self._given]
        assert tuple(numbers.shape) == shape, "the work asks for other numbers than were recorded"
        self._given += 1
        return numbers


class Compiled:
    """A function of a source of random numbers and of tensors, compiled when it is first called.

    Compiled work is a function of tensors: it can hold no generator, so its numbers are drawn before it
    begins, from the same stream in the same order. Shapes must be the same at every call. The first call also
    runs the function once as it is written, without gradients, to record its draws; that moves no stream.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        alone = {name: _ALONE[name] for name in _ALONE.keys() & inspect.signature(torch.compile).parameters}
        self._function = function
        self._compiled = torch.compile(self._with_numbers, fullgraph=True, dynamic=False, **alone)
        self._draws: list[RecordedDraw] | None = None

    def __call__(self, generator: torch.Generator, *inputs: Any) -> Any:
        """Compute what the function computes."""
        if self._draws is None:
            self._draws = self._recorded(generator.device, inputs)
        return self._compiled([draw.drawn(generator) for draw in self._draws], *inputs)

    def _recorded(self, device: torch.device, inputs: tuple[Any, ...]) -> list[RecordedDraw]:
        recorder = DrawRecorder(device)
        with torch.no_grad():
            self._function(recorder, *inputs)
        return recorder.draws

    def _with_numbers(self, numbers: list[Tensor], *inputs: Any) -> Any:
        drawn = DrawnAhead(numbers)
        result = self._function(drawn, *inputs)
        assert drawn.left == 0, "the work asks for fewer numbers than were recorded"
        return result


def compile_acting(actor: Actor) -> None:
    """Have an actor select greedy actions by compiled work."""

    def select(rng: Rng, stacks: Tensor) -> Tensor:
        with torch.no_grad():  # in inference mode PyTorch compiles no view of a weight
            return actor.network.q_values(stacks, rng, noise_rows=len(stacks)).argmax(dim=1)

    compiled = Compiled(select)

    def compute_greedy() -> None:
        actor.actions.copy_(compiled(actor.generator, actor.stacks))

    actor.compute_greedy = actor.select = compute_greedy
