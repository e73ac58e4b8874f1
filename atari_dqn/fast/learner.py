"""Faster gradient steps, with the state, the draws and, up to rounding, the results of `Learner`."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn

from atari_dqn.agent.learner import Learner, Update
from atari_dqn.agent.losses import LOSS_METRICS, LossOutput
from atari_dqn.agent.random_draws import Rng
from atari_dqn.fast.compile import Compiled
from atari_dqn.fast.cpu.factored import FactoredGradient, write_out
from atari_dqn.fast.fused_network import FusedNetwork
from atari_dqn.fast.optimizers import (
    CLIP_EPSILON,
    FastAdam,
    FastRMSProp,
    clip_in_buffer,
    gradient_norm,
    step_on_device,
)
from atari_dqn.minibatch import Batch


class FastLearner(Learner):
    """A `Learner` that does not wait for a GPU, and computes the gradient's norm by a kernel on a CPU.

    If the online network is fused and the optimizer supports it, the largest gradient, that of the hidden
    layer's weight, is kept as two factors from the backward pass of the loss to the end of `gradient_step`.
    Gradients that are computed elsewhere, in the loss too, are complete.
    """

    def __init__(self, **parts: Any) -> None:
        super().__init__(**parts)
        self._is_on_cpu = self.generator.device.type == "cpu"
        self._step_on_device = step_on_device(self.optimizer)
        self._unwritten = self._place_of_unwritten()

    def gradient_step(self, batch: Batch) -> Update:
        """Take one gradient step."""
        try:
            return super().gradient_step(batch)
        finally:
            if self._unwritten is not None:
                self._unwritten.clear()

    @property
    def leaves_unwritten(self) -> bool:
        """Whether the gradient of the hidden layer's weight is kept as two factors, in small minibatches."""
        return self._unwritten is not None

    def _place_of_unwritten(self) -> list[FactoredGradient] | None:
        """Find the optimizer's list of factored gradients; None if it needs every gradient in `.grad`."""
        optimizer = self.optimizer
        if self._accumulate > 1 or not isinstance(self.online, FusedNetwork):
            return None
        if not self.online.fused.fits_factors:
            return None
        if not isinstance(optimizer, FastRMSProp | FastAdam):
            return None
        moved = {id(weight) for group in optimizer.param_groups for weight in group["params"]}
        moves_all = all(weight.requires_grad and id(weight) in moved for weight in self._weights)
        return optimizer.unwritten if moves_all else None

    def _add_gradients(self, loss: Float[Tensor, ""]) -> None:
        """Add the gradients of the loss; a factored one only if its weight has no other."""
        unwritten = self._unwritten
        if unwritten is None:
            super()._add_gradients(loss)
            return
        assert isinstance(self.online, FusedNetwork)
        with self.online.fused.appending_to(unwritten):
            super()._add_gradients(loss)
        has_others = any(weight.grad is not None for each in unwritten for weight in each.weights)
        if has_others or len(unwritten) > 1:  # a loss with a penalty on weights, or with two forward passes
            write_out(unwritten)

    def _clip_gradients(self) -> Float[Tensor, ""]:
        gradients = [weight.grad for weight in self._weights if weight.grad is not None]
        if not self._is_on_cpu:
            return clip_in_buffer(gradients, self._max_grad_norm)
        unwritten = self._unwritten if self._unwritten is not None else []
        norm = gradient_norm(gradients, unwritten)
        if math.isfinite(self._max_grad_norm) and not self._is_within(norm):
            nn.utils.clip_grads_with_norm_(self._weights, self._max_grad_norm, norm, foreach=True)
            for place, gradient in enumerate(unwritten):
                scale = (self._max_grad_norm / (norm + CLIP_EPSILON)).clamp(max=1.0)  # as PyTorch's
                unwritten[place] = replace(gradient, scale=scale.item())
        return norm

    def _is_within(self, norm: Float[Tensor, ""]) -> bool:
        """Return whether clipping would change nothing."""
        return self._max_grad_norm >= norm.item() + CLIP_EPSILON

    def _step_if(self, finite: Tensor) -> None:
        if self._is_on_cpu:
            super()._step_if(finite)
        else:
            self._step_on_device(self.optimizer, finite)


class CompiledLearner(FastLearner):
    """A `Learner` whose loss and its gradients are compiled."""

    def __init__(self, **parts: Any) -> None:
        super().__init__(**parts)
        self._compiled = Compiled(self._total)

    def try_out(self, batch: Batch) -> None:
        """Compute loss and gradients once, which compiles them, without a step."""
        for part in batch.split(self._accumulate):
            self._backward(part)
        self.optimizer.zero_grad()

    def _total(self, rng: Rng, part: Batch) -> tuple[Tensor, ...]:
        output = self.loss(part, self.online, self.target, rng)
        metrics = (output.metrics[name] for name in LOSS_METRICS)
        return self._reduced_loss(output), output.loss.detach(), output.priorities, *metrics

    def _backward(self, part: Batch) -> LossOutput:
        part = self._augment(part, self.generator)
        total, loss, priorities, *metrics = self._compiled(self.generator, part)
        self._add_gradients(total)
        named = dict(zip(LOSS_METRICS, metrics, strict=True))
        return LossOutput(loss=loss, priorities=priorities, metrics=named)
