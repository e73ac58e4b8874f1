"""The back end of an assembly: makes or changes parts so that they run faster on this machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from atari_dqn.agent.actor import Actor
from atari_dqn.agent.learner import Learner
from atari_dqn.agent.network import QNetwork
from atari_dqn.fast import structure
from atari_dqn.fast.compile import compile_acting, compiling, leave_compiler_unloaded
from atari_dqn.fast.cpu.factored import MOST_ROWS
from atari_dqn.fast.cpu.library import kernels_here, library
from atari_dqn.fast.cpu.priority_tree import KernelTree
from atari_dqn.fast.cpu.ring import KernelRing
from atari_dqn.fast.cuda_graphs import CudaGraphs, unchanged
from atari_dqn.fast.learner import CompiledLearner, FastLearner
from atari_dqn.fast.optimizers import accelerate_optimizer
from atari_dqn.fast.structure import PartChoice, Plan
from atari_dqn.minibatch import Batch
from atari_dqn.replay.priority_tree import PriorityTree
from atari_dqn.replay.ring import FrameRing


class Acceleration:
    """Makes or changes the parts of one assembly.

    It inspects the first network, once. A network's modules may be replaced, hooked or parametrized before;
    later changes are not noticed.
    """

    def __init__(self, device: torch.device, *, compiled: bool = False, fuse: bool = True) -> None:
        self.device, self.compiled = device, compiled
        self._fuse = fuse
        self._plan: Plan | None = None
        self._choices: list[PartChoice] = []
        if not compiled:
            leave_compiler_unloaded()

    def choices(self) -> list[str]:
        """Describe how each part is computed, and why."""
        return [str(choice) for choice in [*(self._plan.choices if self._plan else ()), *self._choices]]

    def kernels(self) -> tuple[str, ...]:
        """List the compiled kernels in use."""
        return kernels_here() if self.device.type == "cpu" else ()

    def network(self, network: QNetwork) -> QNetwork:
        """Change the classes of a network's modules in place; on a CPU, networks to be compiled stay.

        `ValueError` if they were changed before: modules that were replaced since are not inspected.
        """
        if self.compiled and self.device.type == "cpu":
            return network
        if structure.is_accelerated(network):
            raise ValueError(
                "this network is accelerated already, and cannot be inspected again; make a new network, "
                "change its modules if you want to, and accelerate that one"
            )
        if self._plan is None:
            self._plan = structure.inspect_network(network, self.device, fuse=self._fuse)
        structure.apply_plan(self._plan, network)
        return network

    def optimizer(self, optimizer: Optimizer) -> Optimizer:
        """Change an optimizer's class in place to one with a fused step, if its kind has one."""
        name = type(optimizer).__name__
        is_fast = accelerate_optimizer(optimizer)
        has_kernel = self.device.type != "cpu" or _has_portable(self.device)
        by = "fused step" if is_fast and has_kernel else "PyTorch"
        self._choices.append(PartChoice("optimizer", by, name))
        return optimizer

    def learner(self, **parts: Any) -> Learner:
        """Make a learner."""
        learner = CompiledLearner(**parts) if self.compiled else FastLearner(**parts)
        if learner.leaves_unwritten:
            reason = f"the optimizer computes it block by block in minibatches of up to {MOST_ROWS}"
            self._choices.append(PartChoice("largest gradient", "not written", reason))
        return learner

    def priority_tree(self, capacity: int, *, device: torch.device) -> PriorityTree:
        """Make a priority tree."""
        return (KernelTree if _has_portable(device) else PriorityTree)(capacity, device=device)

    def ring(self, *, device: torch.device, **sizes: Any) -> FrameRing:
        """Make a frame ring."""
        return (KernelRing if _has_portable(device) else FrameRing)(device=device, **sizes)

    def captured(
        self,
        function: Callable[[], None],
        *,
        generators: Sequence[torch.Generator],
        mutated: Callable[[], list[Tensor]],
        most_at_once: int = 1,
    ) -> CudaGraphs:
        """Make `function` run from CUDA graphs."""
        return CudaGraphs(function, generators=generators, mutated=mutated, most_at_once=most_at_once)

    def compiling(self) -> AbstractContextManager[None]:
        """Make a context for the calls that compile; `UserError` if compilation fails."""
        return compiling() if self.compiled else nullcontext()

    def compile(self, actor: Actor, learner: Learner, batch: Batch) -> None:
        """Compile acting and learning now, without changing weights or random states."""
        if not isinstance(learner, CompiledLearner):
            return
        compile_acting(actor)
        with unchanged(learner.mutated_tensors, [actor.generator, learner.generator]):
            actor.select()
            learner.try_out(batch)
        actor.actions.zero_()


def _has_portable(device: torch.device) -> bool:
    return device.type == "cpu" and library("portable") is not None
