"""What `auto` in a spec becomes on a machine: a fixed table, so that one machine always gives one spec."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from atari_dqn.devices import BF16_CAPABILITY, cuda_index
from atari_dqn.hardware import Hardware, find_hardware
from atari_dqn.spec.keys import flatten
from atari_dqn.spec.loader import AUTO, ResolvedSpec, deviating_keys
from atari_dqn.spec.schema import Spec


@dataclass(frozen=True, kw_only=True)
class Choice:
    """A value for a key, and what about the machine decided it."""

    key: str
    value: Literal["fp32", "bf16"]
    reason: str

    def __str__(self) -> str:
        """The choice as one line for people."""
        return f'{self.key} = "{AUTO}" is "{self.value}" here: {self.reason}'


def has_auto(spec: Spec) -> bool:
    """Return whether a key still has to be chosen by the machine."""
    return spec.learner.precision == AUTO


def resolve_auto(
    resolved: ResolvedSpec, *, device: str, hardware: Hardware
) -> tuple[ResolvedSpec, tuple[Choice, ...]]:
    """Return the spec with every `auto` replaced by what suits the device, and what was chosen.

    `device` is `cpu`, `cuda` or `cuda:N`. The result, its track's mark included, is the same as if the values
    chosen had been written.
    """
    if not has_auto(resolved.spec):
        return resolved, ()
    choice = precision_for(device, hardware)
    learner = replace(resolved.spec.learner, precision=choice.value)
    spec = replace(resolved.spec, learner=learner)
    return replace(resolved, spec=spec, deviations=deviating_keys(flatten(spec))), (choice,)


def resolve_auto_here(resolved: ResolvedSpec) -> tuple[ResolvedSpec, tuple[Choice, ...]]:
    """Return the same for this machine and the device that a run takes here by default.

    The hardware is looked up only where a key is `auto`: that imports torch.
    """
    if not has_auto(resolved.spec):
        return resolved, ()
    hardware = find_hardware(Path.cwd())
    return resolve_auto(resolved, device="cuda" if hardware.gpus else "cpu", hardware=hardware)


def precision_for(device: str, hardware: Hardware) -> Choice:
    """Return the precision that is quick on a device: bf16 where it is multiplied natively, else fp32."""
    value, reason = _gpu(device, hardware) if device != "cpu" else _cpu(hardware)
    return Choice(key="learner.precision", value=value, reason=reason)


def _gpu(device: str, hardware: Hardware) -> tuple[Literal["fp32", "bf16"], str]:
    gpu = hardware.gpus[cuda_index(device)]
    if gpu.capability >= BF16_CAPABILITY:
        return "bf16", "the GPU multiplies bf16"
    return "fp32", "the GPU does not multiply bf16"


def _cpu(hardware: Hardware) -> tuple[Literal["fp32", "bf16"], str]:
    match hardware.fast_bf16:
        case True:
            return "bf16", "the processor multiplies bf16"
        case False:
            return "fp32", "the processor only emulates bf16"
        case None:
            return "fp32", "the system does not say whether the processor multiplies bf16"
