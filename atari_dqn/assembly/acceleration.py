"""The back end of an assembly: `fast`, or plain PyTorch if the folder `fast` is missing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from types import ModuleType
from typing import Any, Protocol, TypedDict, Unpack

import torch
from torch import Tensor
from torch.optim import Optimizer

from atari_dqn.agent.actor import Actor
from atari_dqn.agent.augmentation import Augment
from atari_dqn.agent.learner import Learner
from atari_dqn.agent.losses import LossFn
from atari_dqn.agent.network import QNetwork
from atari_dqn.agent.upkeep import Upkeep
from atari_dqn.errors import UserError
from atari_dqn.minibatch import Batch
from atari_dqn.replay.priority_tree import PriorityTree
from atari_dqn.replay.ring import FrameRing

_PACKAGE = "atari_dqn.fast"


class Work(Protocol):
    """A function without arguments that reads and writes the same tensors each time it runs."""

    def run(self, times: int = 1) -> None:
        """Run the function `times` times in sequence."""
        ...

    def forget(self) -> None:
        """Discard what was captured, because some of the tensors were replaced."""
        ...


class Eager:
    """Implements `Work` without capture, operation by operation; `fast` has one with CUDA graphs."""

    def __init__(self, function: Callable[[], None]) -> None:
        self._function = function

    def run(self, times: int = 1) -> None:
        """Run the function `times` times."""
        for _ in range(times):
            self._function()

    def forget(self) -> None:
        """Do nothing, because nothing was captured."""


class LearnerParts(TypedDict):
    """The keyword arguments of `Learner`, which describes them; assembly passes all of them."""

    online: QNetwork
    target: QNetwork
    optimizer: Optimizer
    loss: LossFn
    reduction: str
    accumulate: int
    max_grad_norm: float
    target_period_updates: int
    generator: torch.Generator
    augment: Augment
    target_rate: float
    upkeep: Sequence[Upkeep]
    after_step: Callable[[], None]


class Backend(Protocol):
    """Makes or accelerates the parts of one assembly: `fast.acceleration.Acceleration` or `Plain`."""

    def choices(self) -> list[str]:
        """Describe how each part is computed, and why."""
        ...

    def kernels(self) -> tuple[str, ...]:
        """List the compiled kernels in use."""
        ...

    def network(self, network: QNetwork, /) -> QNetwork:
        """Accelerate a finished network in place."""
        ...

    def optimizer(self, optimizer: Optimizer, /) -> Optimizer:
        """Accelerate an optimizer in place; its state stays."""
        ...

    def learner(self, **parts: Unpack[LearnerParts]) -> Learner:
        """Make a learner."""
        ...

    def priority_tree(self, capacity: int, *, device: torch.device) -> PriorityTree:
        """Make a priority tree."""
        ...

    def ring(
        self, *, rows: int, num_envs: int, frame_shape: tuple[int, int], stack: int, device: torch.device
    ) -> FrameRing:
        """Make a frame ring."""
        ...

    def captured(
        self,
        function: Callable[[], None],
        *,
        generators: Sequence[torch.Generator],
        mutated: Callable[[], list[Tensor]],
        most_at_once: int = 1,
    ) -> Work:
        """Make `function` run from captured graphs."""
        ...

    def compiling(self) -> AbstractContextManager[None]:
        """Make a context for the calls that compile."""
        ...

    def compile(self, actor: Actor, learner: Learner, batch: Batch) -> None:
        """Compile acting and learning."""
        ...


class Plain:
    """The back end without acceleration."""

    def choices(self) -> list[str]:
        """Describe that PyTorch computes all parts."""
        return ["all: PyTorch (atari_dqn.fast is not installed)"]

    def kernels(self) -> tuple[str, ...]:
        """List no kernels."""
        return ()

    def network(self, network: QNetwork, /) -> QNetwork:
        """Return the network unchanged."""
        return network

    def optimizer(self, optimizer: Optimizer, /) -> Optimizer:
        """Return the optimizer unchanged."""
        return optimizer

    def learner(self, **parts: Unpack[LearnerParts]) -> Learner:
        """Make a learner."""
        return Learner(**parts)

    def priority_tree(self, capacity: int, *, device: torch.device) -> PriorityTree:
        """Make a priority tree."""
        return PriorityTree(capacity, device=device)

    def ring(
        self, *, rows: int, num_envs: int, frame_shape: tuple[int, int], stack: int, device: torch.device
    ) -> FrameRing:
        """Make a frame ring."""
        return FrameRing(rows=rows, num_envs=num_envs, frame_shape=frame_shape, stack=stack, device=device)

    def captured(self, function: Callable[[], None], **_: Any) -> Work:
        """Raise an AssertionError: callers check `can_capture` first."""
        raise AssertionError(f"nothing captures {function}")

    def compiling(self) -> AbstractContextManager[None]:
        """Do nothing."""
        return nullcontext()

    def compile(self, actor: Actor, learner: Learner, batch: Batch) -> None:
        """Do nothing."""


def fast_module(name: str) -> ModuleType | None:
    """Import a module of `fast`; None if the folder is missing."""
    try:
        return import_module(f"{_PACKAGE}.{name}")
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith(_PACKAGE):
            raise
        return None


def make_backend(device: torch.device, *, compiled: bool = False, fuse: bool = True) -> Backend:
    """Make the back end for one assembly.

    `UserError` if `compiled` is set and `fast` is missing. Without `fuse` no kernel computes a whole
    network.
    """
    found = fast_module("acceleration")
    if found is None:
        if compiled:
            raise UserError("learner.compile is true, but atari_dqn.fast is not installed; set it to false")
        return Plain()
    backend: Backend = found.Acceleration(device, compiled=compiled, fuse=fuse)
    return backend


def capture(function: Callable[[], None], device: torch.device, *, wanted: bool) -> Work:
    """Make a function run from a CUDA graph, if wanted and if the device and the installation have them.

    It must draw no random numbers, and write only tensors that it creates.
    """
    graphs = fast_module("cuda_graphs") if wanted and device.type == "cuda" else None
    if graphs is None:
        return Eager(function)
    work: Work = graphs.CudaGraphs(function, generators=(), mutated=list)
    return work


def can_capture() -> bool:
    """Return whether CUDA graphs are available."""
    return fast_module("cuda_graphs") is not None


def kernels_here() -> tuple[str, ...]:
    """List the compiled kernels that run on this processor."""
    found = fast_module("cpu.library")
    return () if found is None else tuple(found.kernels_here())


def has_kernels() -> bool:
    """Return whether kernels of convolutions and products run on this processor."""
    found = fast_module("cpu.library")
    return found is not None and bool(found.units())


def kernels_for(precision: str, kernels: Sequence[str]) -> list[str]:
    """Select the kernels that a run in this precision uses."""
    found = fast_module("cpu.library")
    return list(kernels) if found is None else list(found.kernels_for(precision, kernels))
