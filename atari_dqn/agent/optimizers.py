"""Optimizers that PyTorch does not have, and those it has, made from plain values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.graph import increment_version
from torch.optim import Adam, Optimizer, RMSprop

from atari_dqn.agent.fused_step import Row, lay_alike, move
from atari_dqn.fast.cpu.factored import FactoredGradient
from atari_dqn.types import StateDict

BLOCK_WEIGHTS = 2**18
"""Weights of a large layer that a CPU moves at once; with their gradients and averages they fill 4 MB."""


StepIf = Callable[[Optimizer, Tensor], None]
"""Moves the weights, or changes neither them nor the optimizer where a 0-dim boolean is false."""


def step_if(optimizer: Optimizer, finite: Tensor) -> None:
    """Look at `finite` and step or not: a GPU would be waited for."""
    if finite:
        optimizer.step()


def step_by_flag(optimizer: Optimizer, finite: Tensor) -> None:
    """Tell the optimizer by `found_inf`, PyTorch's own word for it: a scalar, 1 for a step to skip."""
    optimizer.found_inf = (~finite).float()  # type: ignore[attr-defined]
    optimizer.step()


def step_and_take_back(optimizer: Optimizer, finite: Tensor) -> None:
    """Step in any case, and put everything back where `finite` is false. Averages begin at 0."""
    with torch.no_grad():
        before = {id(tensor): tensor.clone() for tensor in moved_by(optimizer)}
        optimizer.step()
        for tensor in moved_by(optimizer):
            held = before.get(id(tensor), torch.zeros_like(tensor))
            tensor.copy_(torch.where(finite, tensor, held))


def step_if_on(device: torch.device, optimizer: Optimizer) -> StepIf:
    """Return the way to step that waits for no GPU, and on a CPU the quick one."""
    if device.type == "cpu":
        return step_if
    knows_found_inf = isinstance(optimizer, DeepMindRMSProp) or optimizer.defaults.get("fused")
    return step_by_flag if knows_found_inf else step_and_take_back


def moved_by(optimizer: Optimizer) -> list[Tensor]:
    """Return the tensors that a step changes: weights, and averages, which may come with the first step."""
    averages = [value for state in optimizer.state.values() for value in state.values()]
    weights = [weight for group in optimizer.param_groups for weight in group["params"]]
    return [value for value in [*weights, *averages] if isinstance(value, Tensor)]


def load_optimizer(optimizer: Optimizer, state: StateDict) -> None:
    """Take over a state, but not what it says of the device it was on."""
    groups = [
        {**saved, "capturable": own["capturable"]} if "capturable" in own else saved
        for saved, own in zip(state["param_groups"], optimizer.param_groups, strict=True)
    ]
    optimizer.load_state_dict({**state, "param_groups": groups})


class DeepMindRMSProp(Optimizer):
    """RMSProp as DeepMind's Lua code has it: centred, ε inside the root, no heavy-ball term.

        g ← ρ₁ g + (1 − ρ₁) d      n ← ρ₂ n + (1 − ρ₂) d²      w ← w − η d / √(n − g² + ε)

    d is the gradient. `torch.optim.RMSprop(centered=True)` adds ε outside the root. `deepmind/dqn`,
    NeuralQLearner.lua, qLearnMinibatch. With `found_inf` set to a scalar tensor of 1 a step changes nothing,
    and the host need not know.
    """

    found_inf: Tensor | None = None

    def __init__(
        self,
        parameters: Iterable[nn.Parameter],
        *,
        lr: float,
        eps: float,
        gradient_decay: float,
        squared_gradient_decay: float,
    ) -> None:
        defaults = {
            "lr": lr,
            "eps": eps,
            "gradient_decay": gradient_decay,
            "squared_gradient_decay": squared_gradient_decay,
        }
        super().__init__(parameters, defaults)
        self.factored: list[FactoredGradient] = []
        """Gradients that are not written, to be stepped by with the others."""
        for group in self.param_groups:
            for parameter in group["params"]:
                self.state[parameter] = {
                    "mean": torch.zeros_like(parameter, memory_format=torch.preserve_format),
                    "mean_square": torch.zeros_like(parameter, memory_format=torch.preserve_format),
                }

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Move every parameter that has a gradient."""
        assert closure is None, "one gradient, one step"
        (group,) = self.param_groups
        rows: list[Row] = [
            (weight, weight.grad, self.state[weight]["mean"], self.state[weight]["mean_square"])
            for weight in group["params"]
            if weight.grad is not None
        ]
        numbers = _rmsprop_numbers(group)
        if self.found_inf is not None or not move("rmsprop", rows, *numbers):
            for block in _blocks(rows):
                self._move(block, group)
        for gradient in self.factored:
            states = [self.state[weight] for weight in gradient.weights]
            averages = [(state["mean"], state["mean_square"]) for state in states]
            gradient.step("rmsprop", averages, numbers)

    def _move(self, block: list[Row], group: dict[str, Any]) -> None:
        parameters, gradients, means, mean_squares = (list(tensors) for tensors in zip(*block, strict=True))
        goals, decay = gradients, group["squared_gradient_decay"]
        if self.found_inf is not None:
            _zero_if(self.found_inf, gradients)
            goals = list(torch._foreach_add(gradients, torch._foreach_mul(means, self.found_inf)))
            decay = torch.full_like(self.found_inf, decay).masked_fill_(self.found_inf.bool(), 1.0)
        torch._foreach_lerp_(means, goals, 1 - group["gradient_decay"])
        torch._foreach_mul_(mean_squares, decay)
        torch._foreach_addcmul_(mean_squares, gradients, gradients, 1 - group["squared_gradient_decay"])
        roots = torch._foreach_addcmul(mean_squares, means, means, -1.0)
        torch._foreach_add_(roots, group["eps"])
        torch._foreach_sqrt_(roots)
        torch._foreach_addcdiv_(parameters, gradients, roots, -group["lr"])


def _rmsprop_numbers(group: dict[str, Any]) -> tuple[float, ...]:
    """Return a group's numbers as the kernel takes them: the decays, and what a new gradient counts."""
    of_gradient, decay = 1 - group["gradient_decay"], group["squared_gradient_decay"]
    return group["lr"], group["eps"], of_gradient, decay, 1 - decay


def _blocks(rows: list[Row]) -> Iterator[list[Row]]:
    """Yield rows to be moved together: all at once on a GPU, which is then asked for few operations.

    On a CPU a large layer is moved in pieces that stay in its cache from one operation to the next.
    """
    small = [row for row in rows if not _is_large(row[0])]
    if small:
        yield small
    for row in rows:
        if _is_large(row[0]):
            length = max(1, BLOCK_WEIGHTS // row[0][0].numel())
            pieces = (torch.split(tensor, length) for tensor in row)
            yield from ([piece] for piece in zip(*pieces, strict=True))


def _is_large(weight: Tensor) -> bool:
    return weight.device.type == "cpu" and weight.numel() > BLOCK_WEIGHTS


def _zero_if(flag: Tensor, tensors: list[Tensor]) -> None:
    """Set fp32 tensors to 0 where the scalar `flag` is 1. NaN × 0 is NaN, so their bits are multiplied."""
    torch._foreach_mul_([tensor.view(torch.int32) for tensor in tensors], (1 - flag).int())


def deepmind_rmsprop(parameters: Iterable[nn.Parameter], **values: float) -> Optimizer:
    """Make the Lua code's RMSProp. `epsilon` lies inside the root."""
    return DeepMindRMSProp(
        parameters,
        lr=values["learning_rate"],
        eps=values["epsilon"],
        gradient_decay=values["gradient_decay"],
        squared_gradient_decay=values["squared_gradient_decay"],
    )


class OnePassAdam(Adam):
    """Adam with the state of PyTorch's, whose step is one pass over all that it moves. Kingma & Ba (2015).

    By a kernel of the project's own on a CPU, where there is one, else by PyTorch's fused one, which knows
    `found_inf`.
    """

    found_inf: Tensor | None = None

    def __init__(
        self, parameters: Iterable[nn.Parameter], *, lr: float, betas: tuple[float, float], eps: float
    ) -> None:
        weights = list(parameters)
        super().__init__(weights, lr=lr, betas=betas, eps=eps, fused=True, capturable=_on_gpu(weights))
        self.factored: list[FactoredGradient] = []
        """Gradients that are not written, to be stepped by with the others."""

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Move every parameter that has a gradient."""
        assert closure is None, "one gradient, one step"
        (group,) = self.param_groups
        written = [weight for weight in group["params"] if weight.grad is not None]
        if self.found_inf is None and written and written[0].is_cpu and self._move(group, written):
            return
        written += self._write_factored()
        for weight in written:
            lay_alike(weight, self.state[weight])
        super().step()
        increment_version(written)  # PyTorch's fused kernel changes weights without counting it

    def _move(self, group: dict[str, Any], written: list[Tensor]) -> bool:
        """Move weights by the kernel; return False, and move nothing, where it cannot."""
        states = [self._state_of(weight) for weight in written]
        of_factored = [[self._state_of(weight) for weight in gradient.weights] for gradient in self.factored]
        every = [*states, *(state for each in of_factored for state in each)]
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
        for gradient, each in zip(self.factored, of_factored, strict=True):
            gradient.step("adam", [(state["exp_avg"], state["exp_avg_sq"]) for state in each], numbers)
        torch._foreach_add_([state["step"] for state in every], 1.0)
        return True

    def _write_factored(self) -> list[Tensor]:
        """Write out the gradients that are not written; return their weights."""
        pairs = [pair for each in self.factored for pair in zip(each.weights, each.written(), strict=True)]
        for weight, gradient in pairs:
            weight.grad = gradient
        return [weight for weight, _ in pairs]

    def _state_of(self, weight: Tensor) -> dict[str, Tensor]:
        """Return a weight's state, begun as PyTorch begins it."""
        state: dict[str, Tensor] = self.state[weight]
        if not state:
            state["step"] = torch.zeros(())
            for name in ("exp_avg", "exp_avg_sq"):
                state[name] = torch.zeros_like(weight, memory_format=torch.preserve_format)
        return state


def factored_of(optimizer: Optimizer, weights: Iterable[Tensor]) -> list[FactoredGradient] | None:
    """Return where an optimizer looks for gradients of these weights that are not written.

    None if it knows none of the kind, or is not to move all of the weights.
    """
    if not isinstance(optimizer, DeepMindRMSProp | OnePassAdam):
        return None
    moved = {id(weight) for group in optimizer.param_groups for weight in group["params"]}
    moves_all = all(id(weight) in moved for weight in weights if weight.requires_grad)
    return optimizer.factored if moves_all else None


def _adam_numbers(group: dict[str, Any], step: float) -> tuple[float, ...]:
    """Return a group's numbers as the kernel takes them: averages begin at 0, which is made up for."""
    beta1, beta2 = group["betas"]
    rate, root = group["lr"] / (1 - beta1**step), math.sqrt(1 - beta2**step)
    return rate, group["eps"], 1 - beta1, beta2, 1 - beta2, root


def adam(parameters: Iterable[nn.Parameter], **values: float) -> Optimizer:
    """Make Adam."""
    betas = (values["beta1"], values["beta2"])
    return OnePassAdam(parameters, lr=values["learning_rate"], betas=betas, eps=values["epsilon"])


def torch_rmsprop(parameters: Iterable[nn.Parameter], **values: float) -> Optimizer:
    """Make PyTorch's centred RMSProp: ε outside the root, and a heavy-ball term."""
    weights = list(parameters)
    return RMSprop(
        weights,
        lr=values["learning_rate"],
        alpha=values["smoothing"],
        eps=values["epsilon"],
        momentum=values["momentum"],
        centered=True,
        foreach=True,
        capturable=_on_gpu(weights),
    )


def _on_gpu(weights: list[nn.Parameter]) -> bool:
    """Return whether steps may be captured in a CUDA graph: then an optimizer counts them on the device."""
    return any(weight.device.type != "cpu" for weight in weights)
