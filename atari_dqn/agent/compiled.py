"""Work that PyTorch compiles into few large kernels. Ansel et al. (2024), "PyTorch 2".

An update is a hundred and more small operations, and asking for each takes a CPU about as long as doing it.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from atari_dqn.agent.random_draws import DrawnAhead, Rehearsal, Wanted
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


class Compiled:
    """A function of a source of random numbers and of tensors, compiled when it is first called.

    Shapes must be the same at every call. The first call also runs the function once as it is written,
    without gradients, to see which random numbers it asks for; that moves no stream.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        alone = {name: _ALONE[name] for name in _ALONE.keys() & inspect.signature(torch.compile).parameters}
        self._function = function
        self._compiled = torch.compile(self._with_numbers, fullgraph=True, dynamic=False, **alone)
        self._wanted: list[Wanted] | None = None

    def __call__(self, generator: torch.Generator, *inputs: Any) -> Any:
        """Return what the function returns."""
        if self._wanted is None:
            self._wanted = self._rehearsed(generator.device, inputs)
        return self._compiled([draw.drawn(generator) for draw in self._wanted], *inputs)

    def _rehearsed(self, device: torch.device, inputs: tuple[Any, ...]) -> list[Wanted]:
        """Return what the function draws."""
        rehearsal = Rehearsal(device)
        with torch.no_grad():
            self._function(rehearsal, *inputs)
        return rehearsal.wanted

    def _with_numbers(self, numbers: list[torch.Tensor], *inputs: Any) -> Any:
        drawn = DrawnAhead(numbers)
        result = self._function(drawn, *inputs)
        assert drawn.left == 0, "the work asks for fewer numbers than at its rehearsal"
        return result
