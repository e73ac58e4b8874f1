"""Compilation of acting and learning by PyTorch into few large kernels. Ansel et al. (2024), "PyTorch 2".

An update consists of more than a hundred small operations; on a CPU, launching one takes about as long as
executing it.
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
from torch.optim import Optimizer

from atari_dqn.agent.actor import Actor
from atari_dqn.agent.random_draws import Rng, normal, uniform
from atari_dqn.errors import UserError
from atari_dqn.files.atomic import prepare_folder
from atari_dqn.machine.hardware import compiler_name, has_compiler

_KERNELS = "TORCHINDUCTOR_CACHE_DIR"
"""The cache of compiled kernels. PyTorch sets this variable when its compiler is imported."""
_ALONE: dict[str, Any] = {"isolate_recompiles": True}
"""PyTorch limits recompilations; this counts them for each compiled function separately, where supported."""


_EXCLUDED = (Optimizer.add_param_group, Optimizer.zero_grad, Optimizer.state_dict, Optimizer.load_state_dict)
"""Methods that PyTorch never compiles."""
_UNCOMPILED = "__dynamo_disable"
"""The attribute in which PyTorch keeps the form of such a method that is not compiled."""


def leave_compiler_unloaded() -> None:
    """Let optimizers be created without importing PyTorch's compiler, which takes seconds.

    At the first call of a method that it never compiles, PyTorch imports its compiler to exclude the method.
    Here the method itself is recorded as the excluded form, which is the same unless compiled code calls it.
    """
    for method in _EXCLUDED:
        function = inspect.unwrap(method)
        if not hasattr(function, _UNCOMPILED):
            setattr(function, _UNCOMPILED, function)


@contextmanager
def compiling() -> Iterator[None]:
    """Enclose the first calls of compiled functions; `UserError` if they cannot be compiled or cached.

    Kernels are cached in the user's own cache folder: PyTorch loads the files that it finds, and its default
    is a folder under /tmp that any user of the machine can create.
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
    prepare_folder(
        Path(os.environ[_KERNELS]),
        remedy=f"name another folder in {_KERNELS}, or set learner.compile = false",
    )
    try:
        yield
    except TorchDynamoException as error:
        raise UserError(
            f"PyTorch could not compile: {_reason(error)}; learner.compile = false does without"
        ) from error


def _reason(error: Exception) -> str:
    """Extract the first line of the error, of the inner one if PyTorch wrapped it."""
    inner = getattr(error, "inner_exception", error)
    lines = str(inner).split("\n")
    return next((line for line in lines if line.strip()), type(inner).__name__)


class RecordedDraw(NamedTuple):
    """A draw of random numbers: `normal` from N(0, 1) or `uniform` from [0, 1)."""

    kind: str
    shape: tuple[int, ...]

    def drawn(self, generator: torch.Generator) -> Tensor:
        """Draw the numbers from a generator, on its device."""
        return (normal if self.kind == "normal" else uniform)(generator, *self.shape)


class DrawRecorder:
    """Records the draws that a function makes, and returns zeros."""

    def __init__(self, device: torch.device) -> None:
        self.draws: list[RecordedDraw] = []
        self._device = device

    def normal(self, *shape: int) -> Tensor:
        """Record the draw; return zeros."""
        return self._record("normal", shape)

    def uniform(self, *shape: int) -> Tensor:
        """Record the draw; return zeros."""
        return self._record("uniform", shape)

    def _record(self, kind: str, shape: tuple[int, ...]) -> Tensor:
        self.draws.append(RecordedDraw(kind, shape))
        return torch.zeros(shape, device=self._device)


class DrawnAhead:
    """Returns numbers that were drawn before, in order."""

    def __init__(self, numbers: Iterable[Tensor]) -> None:
        self._numbers = list(numbers)
        self._given = 0

    @property
    def left(self) -> int:
        """The number of draws that were not used yet."""
        return len(self._numbers) - self._given

    def normal(self, *shape: int) -> Tensor:
        """Return the next numbers."""
        return self._next(shape)

    def uniform(self, *shape: int) -> Tensor:
        """Return the next numbers."""
        return self._next(shape)

    def _next(self, shape: tuple[int, ...]) -> Tensor:
        numbers = self._numbers[self._given]
        assert tuple(numbers.shape) == shape, "the function draws other numbers than were recorded"
        self._given += 1
        return numbers


class Compiled:
    """A function of a source of random numbers and of tensors, compiled when it is first called.

    A compiled function cannot hold a generator, so its random numbers are drawn before the call, from the
    same generator in the same order. Shapes must be the same in every call. The first call also runs the
    uncompiled function once, without gradients, to record its draws; that does not advance the generator.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        alone = {name: _ALONE[name] for name in _ALONE.keys() & inspect.signature(torch.compile).parameters}
        self._function = function
        self._compiled = torch.compile(self._with_numbers, fullgraph=True, dynamic=False, **alone)
        self._draws: list[RecordedDraw] | None = None

    def __call__(self, generator: torch.Generator, *inputs: Any) -> Any:
        """Call the function."""
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
        assert drawn.left == 0, "the function draws fewer numbers than were recorded"
        return result


def compile_acting(actor: Actor) -> None:
    """Compile an actor's selection of greedy actions."""

    def select(rng: Rng, stacks: Tensor) -> Tensor:
        with torch.no_grad():  # PyTorch cannot compile views of weights in inference mode
            return actor.network.q_values(stacks, rng, noise_rows=len(stacks)).argmax(dim=1)

    compiled = Compiled(select)

    def compute_greedy() -> None:
        actor.actions.copy_(compiled(actor.generator, actor.stacks))

    actor.compute_greedy = actor.select = compute_greedy
