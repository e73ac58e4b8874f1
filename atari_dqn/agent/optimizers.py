"""Optimizers: the two forms of centred RMSProp, and factories for them and for PyTorch's optimizers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial

import torch
from torch import Tensor, nn
from torch.optim import Adam, Optimizer, RAdam, RMSprop

from atari_dqn.agent.weight_decay import DecayedAdam


class DeepMindRMSProp(Optimizer):
    """RMSProp of DeepMind's Lua code: centred, ε inside the root, without momentum.

        g ← ρ₁ g + (1 − ρ₁) d    n ← ρ₂ n + (1 − ρ₂) d²    w ← w − η d / √(max(0, n − g²) + ε)

    d is the gradient. Source: qLearnMinibatch in NeuralQLearner.lua of `deepmind/dqn`.
    `torch.optim.RMSprop(centered=True)` adds ε outside the root.
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
        """Update every parameter that has a gradient."""
        assert closure is None, "closures are not supported"
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is None:
                    continue
                d, g, n = weight.grad, self.state[weight]["mean"], self.state[weight]["mean_square"]
                g.lerp_(d, 1 - group["gradient_decay"])
                n.mul_(group["squared_gradient_decay"])
                n.addcmul_(d, d, value=1 - group["squared_gradient_decay"])
                variance = torch.addcmul(n, g, g, value=-1.0).clamp_min_(0)  # rounding may make it negative
                root = variance.add_(group["eps"]).sqrt_()
                weight.addcdiv_(d, root, value=-group["lr"])


class CentredRMSProp(RMSprop):
    """PyTorch's centred RMSProp, except that the number under the root is never negative.

        n ← α n + (1 − α) d²    g ← α g + (1 − α) d    b ← μ b + d / (√max(0, n − g²) + ε)    w ← w − η b

    d is the gradient. `torch.optim.RMSprop` takes the root of n − g² itself. Where a gradient hardly changes,
    rounding makes this variance negative, and the weight becomes NaN. The state is that of PyTorch's.
    """

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Update every parameter that has a gradient."""
        assert closure is None, "closures are not supported"
        for group in self.param_groups:
            lists: list[list[Tensor]] = [[] for _ in range(6)]
            self._init_group(group, *lists)  # type: ignore[no-untyped-call]
            w, d, n, b, g, steps = lists
            if not w:
                continue
            torch._foreach_add_(steps, 1)
            torch._foreach_mul_(n, group["alpha"])
            torch._foreach_addcmul_(n, d, d, value=1 - group["alpha"])
            torch._foreach_lerp_(g, d, 1 - group["alpha"])
            root = torch._foreach_addcmul(n, g, g, value=-1)
            torch._foreach_clamp_min_(root, 0)
            torch._foreach_sqrt_(root)
            torch._foreach_add_(root, group["eps"])
            if b:
                torch._foreach_mul_(b, group["momentum"])
                torch._foreach_addcdiv_(b, d, root)
                torch._foreach_add_(w, b, alpha=-group["lr"])
            else:
                torch._foreach_addcdiv_(w, d, root, value=-group["lr"])


def deepmind_rmsprop(parameters: Iterable[nn.Parameter], **values: float) -> Optimizer:
    """Make DeepMind's RMSProp; `epsilon` is added inside the root."""
    return DeepMindRMSProp(
        parameters,
        lr=values["learning_rate"],
        eps=values["epsilon"],
        gradient_decay=values["gradient_decay"],
        squared_gradient_decay=values["squared_gradient_decay"],
    )


def adam(
    parameters: Iterable[nn.Parameter],
    *,
    weight_decay: float = 0.0,
    not_decayed: Iterable[nn.Parameter] = (),
    **values: float,
) -> Optimizer:
    """Make PyTorch's Adam, or AdamW; `epsilon` is added outside the root. Kingma & Ba (2015)."""
    decayed = partial(DecayedAdam, decay=weight_decay, not_decayed=not_decayed)
    make = decayed if weight_decay else partial(Adam, fused=True)
    return _with_moments(make, parameters, values)


def radam(parameters: Iterable[nn.Parameter], **values: float) -> Optimizer:
    """Make PyTorch's rectified Adam; `epsilon` is added outside the root. Liu et al. (2020)."""
    return _with_moments(partial(RAdam, foreach=True), parameters, values)


def _with_moments(
    make: Callable[..., Optimizer], parameters: Iterable[nn.Parameter], values: Mapping[str, float]
) -> Optimizer:
    """Make an optimizer with Adam's arguments."""
    weights = list(parameters)
    return make(
        weights,
        lr=values["learning_rate"],
        betas=(values["beta1"], values["beta2"]),
        eps=values["epsilon"],
        capturable=_on_gpu(weights),
    )


def torch_rmsprop(parameters: Iterable[nn.Parameter], **values: float) -> Optimizer:
    """Make PyTorch's centred RMSProp; `epsilon` is added outside the root."""
    weights = list(parameters)
    return CentredRMSProp(
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
