"""Optimizers that PyTorch does not have, and those it has, made from plain values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.graph import increment_version
from torch.optim import Adam, Optimizer, RMSprop

from atari_dqn.agents.one_pass import Row, move
from atari_dqn.types import StateDict

BLOCK_WEIGHTS = 2**18
"""Weights of a large layer that a CPU moves at once; with their gradients and averages they fill 4 MB."""


StepIf = Callable[[Optimizer, Tensor], None]
"""Moves the weights, or changes neither them nor the optimizer where a 0-dim boolean is false."""


def step_if(optimizer: Optimizer, finite: Tensor) -> None:
    """Look at `finite` and step or not: a GPU would be waited for."""
    if finite:
        optimizer.step()
    # the fused kernel of Adam changes weights without raising PyTorch's count of changes in place
    increment_version([weight for group in optimizer.param_groups for weight in group["params"]])


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
        for group in self.param_groups:
            rows: list[Row] = [
                (weight, weight.grad, self.state[weight]["mean"], self.state[weight]["mean_square"])
                for weight in group["params"]
                if weight.grad is not None
            ]
            if self.found_inf is not None or not move("rmsprop", rows, *_rmsprop_numbers(group)):
                for block in _blocks(rows):
                    self._move(block, group)

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


def adam(parameters: Iterable[nn.Parameter], **values: float) -> Optimizer:
    """Make Adam, in one fused kernel. Kingma & Ba (2015)."""
    betas = (values["beta1"], values["beta2"])
    weights = list(parameters)
    fused = {"fused": True, "capturable": _on_gpu(weights)}
    return Adam(weights, lr=values["learning_rate"], betas=betas, eps=values["epsilon"], **fused)


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
