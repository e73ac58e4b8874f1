"""Optimizers whose step is one kernel (docs/decisions/0034), or does not wait for the GPU.

They have the state of the plain classes; `accelerate_optimizer` changes the class of a finished optimizer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd.graph import increment_version
from torch.optim import Adam, Optimizer

from atari_dqn.agent.optimizers import DeepMindRMSProp
from atari_dqn.fast.cpu.factored import FactoredGradient, Rule, write_out
from atari_dqn.fast.cpu.library import integers, library, pointers
from atari_dqn.fast.flat_buffer import ensure_buffer, find_buffer, move_to_buffer

BLOCK_WEIGHTS = 2**18
"""Number of weights that a CPU updates at once; with gradients and averages they take 4 MB of cache."""
CLIP_EPSILON = 1e-6
"""PyTorch adds this to the norm before it divides by it."""
Row = tuple[Tensor, ...]
"""A weight, its gradient and its two averages, or the buffers of several."""


class FastRMSProp(DeepMindRMSProp):
    """`DeepMindRMSProp` by a kernel on a CPU, on a GPU by operations on all weights at once.

    If `found_inf` is a scalar tensor with the value 1, a step changes nothing, as in PyTorch's fused Adam.
    """

    found_inf: Tensor | None = None
    unwritten: list[FactoredGradient]
    """Factored gradients, which the step applies with the others."""

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Update every parameter that has a gradient."""
        assert closure is None, "closures are not supported"
        (group,) = self.param_groups
        rows: list[Row] = [
            (weight, weight.grad, self.state[weight]["mean"], self.state[weight]["mean_square"])
            for weight in group["params"]
            if weight.grad is not None
        ]
        numbers = _rmsprop_numbers(group)
        if self.found_inf is not None or not move("rmsprop", rows, *numbers):
            for row in _in_buffers(rows) or _blocks(rows):
                self._move(row, group)
        for gradient in self.unwritten:
            states = [self.state[weight] for weight in gradient.weights]
            averages = [(state["mean"], state["mean_square"]) for state in states]
            gradient.step("rmsprop", averages, numbers)

    def _move(self, row: Row, group: dict[str, Any]) -> None:
        weight, gradient, mean, mean_square = row
        new_share, decay = 1 - group["gradient_decay"], group["squared_gradient_decay"]
        if self.found_inf is not None:
            skips = self.found_inf.bool()
            gradient = gradient.masked_fill(skips, 0.0)
            new_share = torch.full_like(self.found_inf, new_share).masked_fill_(skips, 0.0)
            decay = torch.full_like(self.found_inf, decay).masked_fill_(skips, 1.0)
        mean.lerp_(gradient, new_share)
        mean_square.mul_(decay)
        mean_square.addcmul_(gradient, gradient, value=1 - group["squared_gradient_decay"])
        variance = torch.addcmul(mean_square, mean, mean, value=-1.0).clamp_min_(0)
        root = variance.add_(group["eps"]).sqrt_()
        weight.addcdiv_(gradient, root, value=-group["lr"])


class FastAdam(Adam):
    """PyTorch's fused Adam, by one of the project's kernels on a CPU. Kingma & Ba (2015)."""

    found_inf: Tensor | None = None
    unwritten: list[FactoredGradient]
    """Factored gradients, which the step applies with the others."""

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Update every parameter that has a gradient."""
        assert closure is None, "closures are not supported"
        (group,) = self.param_groups
        written = [weight for weight in group["params"] if weight.grad is not None]
        if self.found_inf is None and written and written[0].is_cpu and self._move(group, written):
            return
        written += write_out(self.unwritten)
        for weight in written:
            _lay_alike(weight, self.state[weight])
        super().step()
        increment_version(written)  # PyTorch's fused kernel changes weights without counting it

    def _move(self, group: dict[str, Any], written: list[Tensor]) -> bool:
        """Update the weights by the kernel; return False, and change nothing, if it cannot."""
        states = [self._state_of(weight) for weight in written]
        of_unwritten = [
            [self._state_of(weight) for weight in gradient.weights] for gradient in self.unwritten
        ]
        every = [*states, *(state for each in of_unwritten for state in each)]
        counts = {float(state["step"]) for state in every}
        if len(counts) > 1:
            return False
        numbers = _adam_numbers(group, counts.pop() + 1)
        rows: list[Row] = [
            (weight, weight.grad, state["exp_avg"], state["exp_avg_sq"])
            for weight, state in zip(written, states, strict=True)
            if weight.grad is not None
        ]
        if not move("adam", rows, *numbers):
            return False
        for gradient, each in zip(self.unwritten, of_unwritten, strict=True):
            gradient.step("adam", [(state["exp_avg"], state["exp_avg_sq"]) for state in each], numbers)
        torch._foreach_add_([state["step"] for state in every], 1.0)
        return True

    def _state_of(self, weight: Tensor) -> dict[str, Tensor]:
        """Return a weight's state, initialized as by PyTorch."""
        state: dict[str, Tensor] = self.state[weight]
        if not state:
            state["step"] = torch.zeros(())
            for name in ("exp_avg", "exp_avg_sq"):
                state[name] = torch.zeros_like(weight, memory_format=torch.preserve_format)
        return state


FAST: dict[type[Optimizer], type[FastRMSProp] | type[FastAdam]] = {
    DeepMindRMSProp: FastRMSProp,
    Adam: FastAdam,
}
_NOT_COMPUTED = ("weight_decay", "amsgrad", "maximize")
"""Options of PyTorch's Adam that the kernel does not compute."""


def accelerate_optimizer(optimizer: Optimizer) -> bool:
    """Change an optimizer's class to the fast one of its kind; return False if it must keep its own.

    Its own is kept if there is no fast one, or if that lacks the optimizer's options or groups of weights.
    RMSProp on a GPU replaces the memory of all weights by one buffer. Tensors that were taken from a network
    before, such as those of its `state_dict`, no longer change with it.
    """
    fast, groups = FAST.get(type(optimizer)), optimizer.param_groups
    if fast is None or len(groups) > 1 or any(groups[0].get(option) for option in _NOT_COMPUTED):
        optimizer.register_step_post_hook(_count_changes)
        return False
    optimizer.__class__ = fast
    optimizer._patch_step_function()  # so that hooks are called around the new step
    optimizer.unwritten = []  # type: ignore[attr-defined]
    if isinstance(optimizer, FastRMSProp) and not _is_on_cpu(optimizer):
        move_to_buffer([weight for group in optimizer.param_groups for weight in group["params"]])
    return True


def _count_changes(optimizer: Optimizer, *_: object) -> None:
    """Count a step in the weights' versions, by which caches are renewed; PyTorch's fused steps do not."""
    for group in optimizer.param_groups:
        if group.get("fused"):
            increment_version(group["params"])


def step_by_flag(optimizer: Optimizer, finite: Tensor) -> None:
    """Step if `finite`, by setting PyTorch's attribute `found_inf`: 1 skips the step."""
    optimizer.found_inf = (~finite).float()  # type: ignore[attr-defined]
    optimizer.step()


def step_and_take_back(optimizer: Optimizer, finite: Tensor) -> None:
    """Step in any case, then restore everything unless `finite`. Averages are 0 initially."""
    with torch.no_grad():
        before = {id(tensor): tensor.clone() for tensor in _mutated_tensors(optimizer)}
        optimizer.step()
        for tensor in _mutated_tensors(optimizer):
            held = before.get(id(tensor), torch.zeros_like(tensor))
            tensor.copy_(torch.where(finite, tensor, held))


def step_on_device(optimizer: Optimizer) -> Callable[[Optimizer, Tensor], None]:
    """Select the function that steps without waiting for the GPU."""
    knows_found_inf = isinstance(optimizer, FastRMSProp) or optimizer.defaults.get("fused")
    return step_by_flag if knows_found_inf else step_and_take_back


def move(rule: Rule, rows: Sequence[Row], *numbers: float) -> bool:
    """Update weights and averages by a kernel; return False, and change nothing, if it cannot.

    The tensors of a row must be fp32, contiguous in a CPU's memory, with the same strides.
    """
    kernels = library("portable")
    if not rows:
        return True
    if kernels is None or not all(map(_is_plain, rows)):
        return False
    columns: list[tuple[Tensor, ...]] = list(zip(*rows, strict=True))
    weights, _, means, mean_squares = columns
    counts = integers([weight.numel() for weight in weights])
    getattr(kernels, rule)(*map(pointers, columns), counts, len(rows), *numbers)
    increment_version([*weights, *means, *mean_squares])
    return True


def gradient_norm(gradients: list[Tensor], unwritten: Sequence[FactoredGradient] = ()) -> Float[Tensor, ""]:
    """Compute the 2-norm of all gradients on a CPU, by a kernel if it can read them."""
    kernels = library("portable")
    if kernels is not None and all(map(is_readable, gradients)):
        counts = integers([gradient.numel() for gradient in gradients])
        norm = kernels.norm(pointers(gradients), counts, len(gradients))
    else:
        norm = nn.utils.get_total_norm(gradients, foreach=True).item()
    return torch.tensor(math.hypot(norm, *(math.sqrt(gradient.squares()) for gradient in unwritten)))


@torch.no_grad()
def clip_in_buffer(gradients: list[Tensor], largest: float) -> Float[Tensor, ""]:
    """Clip gradients to the largest norm without waiting for a GPU; return the norm before clipping."""
    buffer = ensure_buffer(gradients)
    norm: Tensor = torch.linalg.vector_norm(buffer)
    if math.isfinite(largest):
        buffer.mul_((largest / (norm + CLIP_EPSILON)).clamp(max=1.0))
    return norm


def is_readable(tensor: Tensor) -> bool:
    """Return whether a tensor is fp32 on a CPU and contiguous or channels-last."""
    in_one_piece = tensor.is_contiguous() or tensor.is_contiguous(memory_format=torch.channels_last)
    return in_one_piece and _is_fp32_of_cpu(tensor)


def _lay_alike(weight: Tensor, state: dict[str, Tensor]) -> None:
    """Copy a weight's gradient and averages to its strides, as PyTorch's fused Adam needs them."""
    gradient = weight.grad
    if gradient is not None and gradient.stride() != weight.stride():
        weight.grad = torch.empty_like(weight).copy_(gradient)
    for name, value in state.items():
        if value.shape == weight.shape and value.stride() != weight.stride():
            state[name] = torch.empty_like(weight).copy_(value)


def _mutated_tensors(optimizer: Optimizer) -> list[Tensor]:
    """List the tensors that a step changes; averages may be created by the first step."""
    averages = [value for state in optimizer.state.values() for value in state.values()]
    weights = [weight for group in optimizer.param_groups for weight in group["params"]]
    return [value for value in [*weights, *averages] if isinstance(value, Tensor)]


def _rmsprop_numbers(group: dict[str, Any]) -> tuple[float, ...]:
    """Compute the kernel's arguments: learning rate, ε, and the factors of old averages and new gradients."""
    mean_smoothing, square_decay = 1 - group["gradient_decay"], group["squared_gradient_decay"]
    return group["lr"], group["eps"], mean_smoothing, square_decay, 1 - square_decay


def _adam_numbers(group: dict[str, Any], step: float) -> tuple[float, ...]:
    """Compute the kernel's arguments, with the bias correction of the averages."""
    beta1, beta2 = group["betas"]
    learning_rate, bias_correction2_sqrt = group["lr"] / (1 - beta1**step), math.sqrt(1 - beta2**step)
    return learning_rate, group["eps"], 1 - beta1, beta2, 1 - beta2, bias_correction2_sqrt


def _in_buffers(rows: list[Row]) -> list[Row]:
    """Return the rows as one row of buffers; none if the weights are not in one, as on a CPU."""
    weights, *others = (list(tensors) for tensors in zip(*rows, strict=True)) if rows else ([], [])
    buffer = find_buffer(weights) if weights else None
    if buffer is None or not all(tensor.stride() == row[0].stride() for row in rows for tensor in row):
        return []
    return [(buffer, *map(ensure_buffer, others))]


def _blocks(rows: list[Row]) -> Iterator[Row]:
    """Yield the rows, large ones in pieces that stay in a CPU's cache between operations."""
    for row in rows:
        if _is_large(row[0]):
            length = max(1, BLOCK_WEIGHTS // row[0][0].numel())
            pieces = (torch.split(tensor, length) for tensor in row)
            yield from zip(*pieces, strict=True)
        else:
            yield row


def _is_on_cpu(optimizer: Optimizer) -> bool:
    return all(weight.is_cpu for group in optimizer.param_groups for weight in group["params"])


def _is_large(weight: Tensor) -> bool:
    return weight.device.type == "cpu" and weight.numel() > BLOCK_WEIGHTS


def _is_plain(row: Row) -> bool:
    strides = row[0].stride()
    return is_readable(row[0]) and all(
        tensor.stride() == strides and _is_fp32_of_cpu(tensor) for tensor in row[1:]
    )


def _is_fp32_of_cpu(tensor: Tensor) -> bool:
    return tensor.dtype is torch.float32 and tensor.is_cpu
