"""The values of `auto` keys in a sweep: each method has its own, and keeps those with which it began."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from atari_dqn.machine.automatic import Choice, Machine, resolve_auto
from atari_dqn.machine.hardware import Hardware
from atari_dqn.scale.members import Variant, unresolved
from atari_dqn.spec.keys import Scalar, build
from atari_dqn.spec.loader import ResolvedSpec


def machine_of_a_run(*, threads: int, device: str, hardware: Hardware) -> Machine:
    """Describe the part of a machine that one run has, with as many cores as threads."""
    cores = replace(hardware, cores_usable=threads, cores_physical=threads)
    return Machine(device=device, hardware=cores, has_kernels=_has_kernels, environment={})


def resolved_auto(
    variant: Variant, decided: Mapping[str, Scalar], machine: Machine
) -> tuple[Variant, tuple[Choice, ...]]:
    """Replace each `auto` key by the value that was decided before, or else by its value for a machine."""
    values = {**variant.values, **{key: decided[key] for key in unresolved(variant.values) if key in decided}}
    _, choices = resolve_auto(ResolvedSpec(spec=build(values), name=variant.label, deviations=()), machine)
    chosen = {choice.key: choice.value for choice in choices}
    return replace(variant, values={**values, **chosen}), choices


def merged_choices(resolved: Sequence[tuple[Variant, tuple[Choice, ...]]]) -> tuple[Choice, ...]:
    """Return each choice once, with the labels of its variants if the key has several values."""
    of_key: dict[str, dict[Scalar, list[tuple[str, Choice]]]] = {}
    for variant, choices in resolved:
        for choice in choices:
            of_key.setdefault(choice.key, {}).setdefault(choice.value, []).append((variant.label, choice))
    return tuple(
        replace(found[0][1], reason=_reason(found, is_one_of_several=len(values) > 1))
        for values in of_key.values()
        for found in values.values()
    )


def _reason(found: Sequence[tuple[str, Choice]], *, is_one_of_several: bool) -> str:
    labels = ", ".join(label for label, _ in found)
    reason = found[0][1].reason
    return f"{labels}: {reason}" if is_one_of_several else reason


def _has_kernels() -> bool:
    from atari_dqn.assembly.acceleration import has_kernels  # imports torch, which planning seldom needs

    return has_kernels()
