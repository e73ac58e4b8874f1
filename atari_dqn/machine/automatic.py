"""Resolve `auto` in a spec by a fixed rule, so that the same machine always gives the same spec."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from atari_dqn.machine.devices import BF16_CAPABILITY, cuda_index
from atari_dqn.machine.hardware import Hardware, find_hardware
from atari_dqn.spec.keys import flatten
from atari_dqn.spec.loader import AUTO, ResolvedSpec, deviating_keys
from atari_dqn.spec.schema import Spec


@dataclass(frozen=True, kw_only=True)
class Choice:
    """The value chosen for a key, and the property of the machine that decided it."""

    key: str
    value: Literal["fp32", "bf16"]
    reason: str

    def __str__(self) -> str:
        """Return the choice as one line for the user."""
        return f'{self.key} = "{AUTO}" is "{self.value}" here: {self.reason}'


def has_auto(spec: Spec) -> bool:
    """Return whether a key of the spec is still `auto`."""
    return spec.learner.precision == AUTO


def resolve_auto(
    resolved: ResolvedSpec, *, device: str, hardware: Hardware
) -> tuple[ResolvedSpec, tuple[Choice, ...]]:
    """Replace every `auto` by the value for the device; return the spec and the choices.

    `device` is `cpu`, `cuda` or `cuda:N`. The result, including the mark for deviations from the track, is
    the same as if the chosen values had been written in the spec.
    """
    if not has_auto(resolved.spec):
        return resolved, ()
    choice = precision_for(device, hardware)
    learner = replace(resolved.spec.learner, precision=choice.value)
    spec = replace(resolved.spec, learner=learner)
    return replace(resolved, spec=spec, deviations=deviating_keys(flatten(spec))), (choice,)


def resolve_auto_here(resolved: ResolvedSpec) -> tuple[ResolvedSpec, tuple[Choice, ...]]:
    """Replace every `auto` as `resolve_auto` does, for this machine and its default device.

    The hardware, whose detection imports torch, is detected only if a key is `auto`.
    """
    if not has_auto(resolved.spec):
        return resolved, ()
    hardware = find_hardware(Path.cwd())
    return resolve_auto(resolved, device="cuda" if hardware.gpus else "cpu", hardware=hardware)


def precision_for(device: str, hardware: Hardware) -> Choice:
    """Choose the precision for a device: bf16 if the device multiplies it natively, otherwise fp32."""
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


def why_slow(precision: str, device: str, hardware: Hardware) -> str | None:
    """Return why a precision is slow on this machine, and the remedy; None if it is not known to be slow."""
    if precision != "bf16" or device != "cpu" or hardware.fast_bf16 is not False:
        return None
    return "this CPU only emulates bf16; fp32 is faster here, and --set learner.precision=auto chooses it"
