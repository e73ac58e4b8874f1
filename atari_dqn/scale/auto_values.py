"""Resolve the `auto` keys of a sweep's variants; values that are already in its record do not change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from atari_dqn.machine.automatic import Choice, Machine, resolve_auto
from atari_dqn.machine.hardware import Hardware
from atari_dqn.scale.members import Variant
from atari_dqn.spec.keys import Scalar, build, unresolved
from atari_dqn.spec.loader import ResolvedSpec


def machine_share(*, threads: int, device: str, hardware: Hardware) -> Machine:
    """Describe a run's share of the machine: as many cores as threads."""
    share = replace(hardware, cores_usable=threads, cores_physical=threads)
    # without an environment: the sweep sets the number of threads, not OMP_NUM_THREADS
    return Machine(device=device, hardware=share, has_kernels=_has_kernels, environment={})


def resolve_variant(
    variant: Variant, recorded: Mapping[str, Scalar], machine: Machine
) -> tuple[Variant, tuple[Choice, ...]]:
    """Replace each `auto` by its recorded value, otherwise by that for the machine; return what is new."""
    known = {key: recorded[key] for key in unresolved(variant.values) if key in recorded}
    values = {**variant.values, **known}
    _, choices = resolve_auto(ResolvedSpec(spec=build(values), name=variant.label, deviations=()), machine)
    chosen = {choice.key: choice.value for choice in choices}
    return replace(variant, values={**values, **chosen}), choices


def merge_choices(resolved: Sequence[tuple[Variant, tuple[Choice, ...]]]) -> tuple[Choice, ...]:
    """Merge equal choices; if variants differ in a key, its reason begins with their labels."""
    by_key_and_value: dict[str, dict[Scalar, list[tuple[str, Choice]]]] = {}
    for variant, choices in resolved:
        for choice in choices:
            by_value = by_key_and_value.setdefault(choice.key, {})
            by_value.setdefault(choice.value, []).append((variant.label, choice))
    return tuple(
        replace(labelled[0][1], reason=_reason(labelled, is_one_of_several=len(by_value) > 1))
        for by_value in by_key_and_value.values()
        for labelled in by_value.values()
    )


def _reason(labelled: Sequence[tuple[str, Choice]], *, is_one_of_several: bool) -> str:
    labels = ", ".join(label for label, _ in labelled)
    reason = labelled[0][1].reason
    return f"{labels}: {reason}" if is_one_of_several else reason


def _has_kernels() -> bool:
    from atari_dqn.assembly.acceleration import has_kernels  # imports torch, which planning seldom needs

    return has_kernels()
