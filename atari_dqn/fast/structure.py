"""The inspection of a finished network: which of its modules the kernels can compute on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeGuard

import torch
from torch import Tensor, nn

from atari_dqn.agent.heads import DuelingHead, LinearHead, SharedDuelingHead
from atari_dqn.agent.network import QNetwork
from atari_dqn.agent.noisy import NoisyLinear
from atari_dqn.agent.torsos import ConvolutionalTorso, SamePadConv2d
from atari_dqn.fast.cpu.library import (
    OVERRIDE,
    instruction_set,
    libraries_lacking,
    load_error,
    size_divisor,
    unit_for,
    units,
)
from atari_dqn.fast.cpu.products import fits_product, fits_stack
from atari_dqn.fast.fused_network import FusedNetwork, dense_layers
from atari_dqn.fast.layers import FastNoisyLinear
from atari_dqn.fast.torsos import PatchTorso, StackedTorso, UnfoldedTorso, padding_of

_HEADS = (LinearHead, DuelingHead, SharedDuelingHead)
_FAST = (FusedNetwork, FastNoisyLinear, PatchTorso, StackedTorso, UnfoldedTorso)
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
"""The attributes in which PyTorch keeps the hooks of a module."""


@dataclass(frozen=True, slots=True)
class PartChoice:
    """How a part is computed, and why."""

    part: str
    by: str
    reason: str

    def __str__(self) -> str:
        return f"{self.part}: {self.by} ({self.reason})"


@dataclass(frozen=True, slots=True)
class Plan:
    """The new classes of a network's modules, by module name and in order, and the reasons."""

    classes: dict[str, tuple[type[nn.Module], torch.dtype | None]] = field(default_factory=dict)
    choices: list[PartChoice] = field(default_factory=list)


def inspect_network(network: QNetwork, device: torch.device, *, fuse: bool) -> Plan:
    """Inspect a finished network and plan the new classes of its modules; done once for each assembly."""
    plan = Plan()
    if device.type != "cpu":
        _plan_for_gpu(plan, network)
        return plan
    unit = unit_for(network.dtype)
    _plan_torso(plan, network, has_kernels=unit is not None)
    if unit is None:
        plan.choices.append(PartChoice("layers", "PyTorch", why_no_kernels()))
        return plan
    reason = why_not_fused(plan, network) if fuse else "fusion was not requested"
    if reason is None:
        plan.classes[""] = FusedNetwork, None
        plan.choices.append(PartChoice("network", "fused", "one kernel call computes it"))
        return plan
    _plan_noisy_layers(plan, network)
    plan.choices.extend(_layers_without_kernels(plan, network))
    plan.choices.append(PartChoice("network", "PyTorch", reason))
    return plan


def apply_plan(plan: Plan, network: QNetwork) -> None:
    """Change the classes of a network's modules; parameters, their names and their values stay."""
    for name, (fast, dtype) in plan.classes.items():
        module = network.get_submodule(name)
        module.__class__ = fast
        module.accelerate(*(() if dtype is None else (dtype,)))  # type: ignore[operator]


def is_accelerated(network: QNetwork) -> bool:
    """Return whether a plan changed a class of the network's modules."""
    return any(isinstance(module, _FAST) for module in network.modules())


def why_no_kernels() -> str:
    """Explain why no kernels of products are available in the dtype of a network."""
    if instruction_set() == "none":
        return f"{OVERRIDE} is none"
    if "products" in libraries_lacking():
        error = load_error("products")
        missing = "the kernels were not compiled when the package was installed"
        return missing if error is None else f"the compiled kernels cannot be loaded: {error}"
    if units():
        return "on this processor the kernels compute in fp32 only"
    return "this processor lacks what the kernels need (AVX2, AVX-512 or NEON)"


def _plan_for_gpu(plan: Plan, network: QNetwork) -> None:
    if _is_stack(network.torso):
        plan.classes["torso"] = UnfoldedTorso, network.dtype
        plan.choices.append(
            PartChoice("torso", "products with its unfolded input", "it is a stack of convolutions")
        )
    plan.choices.append(PartChoice("network", "PyTorch", "the project's kernels are for a CPU"))


def _is_stack(torso: nn.Module) -> TypeGuard[ConvolutionalTorso]:
    """Return whether a torso is a stack of convolutions and nothing else, by its methods and its layers."""
    if not isinstance(torso, ConvolutionalTorso):
        return False
    kind = type(torso)
    return (
        kind.encode is ConvolutionalTorso.encode
        and kind.hidden_units is ConvolutionalTorso.hidden_units
        and kind.forward is ConvolutionalTorso.forward
        and all(map(_is_plain_convolution, torso.convolutions))
    )


def _is_plain_convolution(layer: nn.Module) -> bool:
    """Return whether a layer is a convolution whose only options are one stride and zeros around it."""
    if type(layer) not in (nn.Conv2d, SamePadConv2d) or _is_hooked(layer):
        return False
    assert isinstance(layer, nn.Conv2d)
    is_regular = layer.dilation == (1, 1) and layer.groups == 1 and layer.stride[0] == layer.stride[1]
    pads_zeros = layer.padding_mode == "zeros" and not isinstance(layer.padding, str)
    return is_regular and pads_zeros and layer.bias is not None


def _is_hooked(module: nn.Module) -> bool:
    """Return whether a module has hooks, or a weight or bias that is no parameter.

    PyTorch's `spectral_norm` and pruning compute such a weight in a hook. A kernel that computes several
    modules does not call hooks.
    """
    tensors = [getattr(module, name, None) for name in ("weight", "bias")]
    is_computed = any(isinstance(each, Tensor) and not isinstance(each, nn.Parameter) for each in tensors)
    return is_computed or any(getattr(module, hooks) for hooks in _HOOKS)


def _plan_torso(plan: Plan, network: QNetwork, *, has_kernels: bool) -> None:
    torso = network.torso
    if not _is_stack(torso):
        plan.choices.append(PartChoice("torso", "layer by layer", "it is not a stack of convolutions"))
        return
    layers = [layer for layer in torso.convolutions if isinstance(layer, nn.Conv2d)]
    if has_kernels and fits_stack([tuple(layer.weight.shape) for layer in layers], network.dtype):
        plan.classes["torso"] = StackedTorso, network.dtype
        plan.choices.append(PartChoice("torso", "convolution stack", "its sizes fit"))
    elif all(layer.kernel_size == layer.stride and not any(padding_of(layer)) for layer in layers):
        plan.classes["torso"] = PatchTorso, network.dtype
        plan.choices.append(PartChoice("torso", "products with patches", "its kernels do not overlap"))
    elif has_kernels:
        plan.choices.append(PartChoice("torso", "layer by layer", "a convolution's sizes do not fit"))


def _plan_noisy_layers(plan: Plan, network: QNetwork) -> None:
    """Plan the kernel of each noisy layer; those of the head compute in fp32."""
    for name, module in network.named_modules():
        if type(module) is NoisyLinear:
            dtype = torch.float32 if name.startswith("head") else network.dtype
            if fits_product(tuple(module.weight.shape), dtype):
                plan.classes[name] = FastNoisyLinear, dtype
                plan.choices.append(PartChoice(name, "kernel", "its sizes fit"))
            else:
                plan.choices.append(PartChoice(name, "PyTorch", "its sizes do not fit"))


def _layers_without_kernels(plan: Plan, network: QNetwork) -> Iterator[PartChoice]:
    """Yield each class of layers outside of a whole torso that no kernel computes by itself."""
    of_torso = "torso" in plan.classes
    classes = {
        type(layer)
        for name, layer in network.named_modules()
        if [*layer.parameters(recurse=False)]
        and type(layer) is not NoisyLinear
        and not (of_torso and name.startswith("torso.convolutions"))
    }
    for name in sorted(each.__name__ for each in classes):
        yield PartChoice(name, "PyTorch", "no kernel computes this layer by itself")


def why_not_fused(plan: Plan, network: QNetwork) -> str | None:
    """Explain why a network cannot be fused; None if it can."""
    torso, head = network.torso, network.head
    if type(network) is not QNetwork or type(head) not in _HEADS:
        return f"no kernel computes a whole {type(network).__name__} with a {type(head).__name__}"
    if plan.classes.get("torso", (None, None))[0] is not StackedTorso:
        return "its torso is not a convolution stack"
    layers = dense_layers(torso, head)
    if not layers:
        return "its fully connected layers are of several classes or without biases"
    if any(map(_is_hooked, (torso, head, *layers))):
        return "a module has hooks, which the kernels do not call, or a computed weight"
    hidden = tuple(layers[0].weight.shape)
    fits = fits_product(hidden, network.dtype) and layers[-1].in_features % size_divisor() == 0
    parameters = [parameter for layer in layers for parameter in layer.parameters()]
    if not fits or not all(parameter.is_contiguous() for parameter in parameters):
        return "a fully connected layer's sizes do not fit"
    return None
