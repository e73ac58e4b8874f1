"""Work that PyTorch compiles into few large kernels. Ansel et al. (2024), "PyTorch 2".

An update is a hundred and more small operations, and asking for each takes a CPU about as long as doing it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from typing import Any

import torch

from atari_dqn.agents.draws import DrawnAhead, Rehearsal, Rng, Wanted
from atari_dqn.errors import UserError

_COMPILERS = ("g++", "clang++", "c++")


def check_compiler() -> None:
    """Refuse, with a `UserError`, to compile without a C++ compiler, which PyTorch takes from CXX too."""
    wanted = (os.environ["CXX"],) if os.environ.get("CXX") else _COMPILERS
    if not any(shutil.which(name) for name in wanted):
        raise UserError(
            f"learner.compile is true, but there is no C++ compiler here (looked for {', '.join(wanted)}); "
            f"install one or set it to false"
        )


class Compiled:
    """A function of a source of random numbers and of tensors, compiled when it is first called.

    Shapes must be the same at every call. The first call also runs the function once as it is written,
    without gradients, to see which random numbers it asks for; that moves no stream.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._compiled = torch.compile(self._with_numbers, fullgraph=True, dynamic=False)
        self._wanted: list[Wanted] | None = None

    def __call__(self, generator: torch.Generator, *inputs: Any) -> Any:
        """Return what the function returns."""
        if self._wanted is not None:
            return self._run(self._wanted, generator, inputs)
        rehearsal = Rehearsal(generator.device)
        with torch.no_grad():
            self._function(rehearsal, *inputs)
        self._wanted = rehearsal.wanted
        try:
            return self._run(self._wanted, generator, inputs)
        except torch._dynamo.exc.TorchDynamoException as error:
            reason = str(error).partition("\n")[0]
            raise UserError(f"PyTorch could not compile: {reason}; learner.compile = false works") from error

    def _run(self, wanted: list[Wanted], generator: torch.Generator, inputs: tuple[Any, ...]) -> Any:
        return self._compiled([draw.drawn(generator) for draw in wanted], *inputs)

    def _with_numbers(self, numbers: list[torch.Tensor], *inputs: Any) -> Any:
        rng: Rng = DrawnAhead(numbers)
        return self._function(rng, *inputs)
