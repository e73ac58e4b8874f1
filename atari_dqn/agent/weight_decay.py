"""Adam with decoupled weight decay. Loshchilov & Hutter (2019)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import torch
from torch import nn
from torch.optim import Adam


class DecayedAdam(Adam):
    """AdamW: w ← (1 − η λ) w before each step of Adam, for weights with more than one dimension.

    η is the learning rate and λ the decay. Biases do not decay, as in the code of Schwarzer et al. (2023),
    nor do the weights in `not_decayed`; `torch.optim.AdamW` would need two groups of weights for this.
    """

    def __init__(
        self,
        parameters: Iterable[nn.Parameter],
        *,
        decay: float,
        not_decayed: Iterable[nn.Parameter],
        lr: float,
        betas: tuple[float, float],
        eps: float,
        capturable: bool,
    ) -> None:
        super().__init__(parameters, lr=lr, betas=betas, eps=eps, foreach=True, capturable=capturable)
        self.decay = decay
        self._not_decayed = {id(weight) for weight in not_decayed}

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Update every parameter that has a gradient."""
        assert closure is None, "closures are not supported"
        for group in self.param_groups:
            matrices = [
                weight for weight in group["params"] if weight.grad is not None and self._decays(weight)
            ]
            if matrices:
                torch._foreach_mul_(matrices, 1 - group["lr"] * self.decay)
        super().step()

    def _decays(self, weight: nn.Parameter) -> bool:
        return weight.dim() > 1 and id(weight) not in self._not_decayed


def normalization_weights(network: nn.Module) -> Iterator[nn.Parameter]:
    """Yield the weights and biases of normalisation layers, which may have the shape of an image."""
    for layer in network.modules():
        if isinstance(layer, nn.LayerNorm | nn.GroupNorm):
            yield from layer.parameters()
