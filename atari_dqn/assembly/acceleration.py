"""The door to `fast`: the back end whose parts compute sooner, or plain parts where it is not there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from types import ModuleType
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.optim import Optimizer

from atari_dqn.agent.actor import Actor
from atari_dqn.agent.learner import Learner
from atari_dqn.agent.network import QNetwork
from atari_dqn.errors import UserError
from atari_dqn.minibatch import Minibatch
from atari_dqn.replay.priority_tree import PriorityTree
from atari_dqn.replay.ring import FrameRing

_PACKAGE = "atari_dqn.fast"


class Work(Protocol):
    """Work of a device on fixed tensors (`train.work`)."""

    def run(self, times: int = 1) -> None:
        """Do it so many times."""
        ...

    def forget(self) -> None:
        """Take note that some of its tensors were replaced."""
        ...


class Backend(Protocol):
    """Makes or changes the parts of one assembly (`fast.acceleration.Acceleration`)."""

    def choices(self) -> list[str]:
        """Describe what computes which part, and why."""
        ...

    def kernels(self) -> tuple[str, ...]:
        """Name the compiled kernels that give numbers here."""
        ...

    def network(self, network: QNetwork, /) -> QNetwork:
        """Swap the layers of a finished network."""
        ...

    def optimizer(self, optimizer: Optimizer, /) -> Optimizer:
        """Give an optimizer of the same state."""
        ...

    def learner(self, **parts: Any) -> Learner:
        """Make a learner."""
        ...

    def priority_tree(self, capacity: int, *, device: torch.device) -> PriorityTree:
        """Make a tree of priorities."""
        ...

    def ring(self, *, device: torch.device, **sizes: Any) -> FrameRing:
        """Make a ring of frames."""
        ...

    def captured(
        self,
        function: Callable[[], None],
        *,
        generators: Sequence[torch.Generator],
        mutated: Callable[[], list[Tensor]],
        most_at_once: int = 1,
    ) -> Work:
        """Have work be played from recordings."""
        ...

    def compiling(self) -> AbstractContextManager[None]:
        """Have a block compile."""
        ...

    def compile(self, actor: Actor, learner: Learner, batch: Minibatch) -> None:
        """Compile acting and learning."""
        ...


class Plain:
    """The parts as they are written, in PyTorch."""

    def choices(self) -> list[str]:
        """Tell that PyTorch computes everything."""
        return ["all: PyTorch (atari_dqn.fast is not installed)"]

    def kernels(self) -> tuple[str, ...]:
        """Name none."""
        return ()

    def network(self, network: QNetwork, /) -> QNetwork:
        """Give the network as it is."""
        return network

    def optimizer(self, optimizer: Optimizer, /) -> Optimizer:
        """Give the optimizer as it is."""
        return optimizer

    def learner(self, **parts: Any) -> Learner:
        """Make a learner."""
        return Learner(**parts)

    def priority_tree(self, capacity: int, *, device: torch.device) -> PriorityTree:
        """Make a tree of priorities."""
        return PriorityTree(capacity, device=device)

    def ring(self, *, device: torch.device, **sizes: Any) -> FrameRing:
        """Make a ring of frames."""
        return FrameRing(device=device, **sizes)

    def captured(self, function: Callable[[], None], **_: Any) -> Work:
        """Refuse: what cannot be captured is not asked for."""
        raise AssertionError(f"nothing captures {function}")

    def compiling(self) -> AbstractContextManager[None]:
        """Change nothing."""
        return nullcontext()

    def compile(self, actor: Actor, learner: Learner, batch: Minibatch) -> None:
        """Change nothing."""


def fast_module(name: str) -> ModuleType | None:
    """Import a module of `fast`; None where the folder is not there."""
    try:
        return import_module(f"{_PACKAGE}.{name}")
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith(_PACKAGE):
            raise
        return None


def make_backend(device: torch.device, *, compiled: bool = False, fuse: bool = True) -> Backend:
    """Make the back end for one assembly.

    `UserError` where work is to be compiled and `fast` is not there. `fuse` false has each layer of a network
    called by itself.
    """
    found = fast_module("acceleration")
    if found is None:
        if compiled:
            raise UserError("learner.compile is true, but atari_dqn.fast is not installed; set it to false")
        return Plain()
    backend: Backend = found.Acceleration(device, compiled=compiled, fuse=fuse)
    return backend


def can_capture() -> bool:
    """Tell whether work can be played from CUDA graphs."""
    return fast_module("cuda_graphs") is not None


def kernels_here() -> tuple[str, ...]:
    """Name the compiled kernels that run on this processor."""
    found = fast_module("cpu.library")
    return () if found is None else tuple(found.kernels_here())


def kernels_for(precision: str, kernels: Sequence[str]) -> list[str]:
    """Select the kernels that give numbers to a run that learns in a precision."""
    found = fast_module("cpu.library")
    return list(kernels) if found is None else list(found.kernels_for(precision, kernels))
