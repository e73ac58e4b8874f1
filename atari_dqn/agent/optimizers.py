"""Optimizers: DeepMind's RMSProp, and PyTorch's, made from plain values."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import nn
from torch.optim import Adam, Optimizer, RMSprop


class DeepMindRMSProp(Optimizer):
    """RMSProp as DeepMind's Lua code has it: centred, ε inside the root, no heavy-ball term.

        g ← ρ₁ g + (1 − ρ₁) d      n ← ρ₂ n + (1 − ρ₂) d²      w ← w − η d / √(n − g² + ε)

    d is the gradient. `torch.optim.RMSprop(centered=True)` adds ε outside the root. `deepmind/dqn`,
    NeuralQLearner.lua, qLearnMinibatch.
    """

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
            for weight in group["params"]:
                if weight.grad is None:
                    continue
                d, g, n = weight.grad, self.state[weight]["mean"], self.state[weight]["mean_square"]
                g.lerp_(d, 1 - group["gradient_decay"])
                n.mul_(group["squared_gradient_decay"])
                n.addcmul_(d, d, value=1 - group["squared_gradient_decay"])
                root = torch.addcmul(n, g, g, value=-1.0).add_(group["eps"]).sqrt_()
                weight.addcdiv_(d, root, value=-group["lr"])


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
    """Make PyTorch's Adam. Kingma & Ba (2015). `epsilon` lies beside the root."""
    weights = list(parameters)
    return Adam(
        weights,
        lr=values["learning_rate"],
        betas=(values["beta1"], values["beta2"]),
        eps=values["epsilon"],
        fused=True,
        capturable=_on_gpu(weights),
    )


def torch_rmsprop(parameters: Iterable[nn.Parameter], **values: float) -> Optimizer:
    """Make PyTorch's centred RMSProp. `epsilon` lies beside the root."""
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
    return any(weight.device.type != "cpu" for weight in weights)
