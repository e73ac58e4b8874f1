"""Recommend settings for a machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from atari_dqn.machine.automatic import precision_for
from atari_dqn.machine.hardware import Hardware

if TYPE_CHECKING:  # it imports torch, which may be missing
    from atari_dqn.bench.update_times import UpdateTime

_NEARLY_AS_FAST = 1.05


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A recommended value for a key or option, with the reason."""

    key: str
    value: str
    reason: str


def recommend(hardware: Hardware) -> tuple[Setting, ...]:
    """Recommend settings from the hardware of a machine."""
    return (_device_setting(hardware), _workers_setting(hardware), _precision_setting(hardware))


def recommend_for(times: Sequence[UpdateTime], hardware: Hardware) -> tuple[Setting, ...]:
    """Recommend settings for a machine without a GPU from measured update times."""
    fastest = min(times, key=lambda time: time.seconds)
    # the fewest threads that are nearly as fast, which leaves cores for emulation
    enough = fastest.seconds * _NEARLY_AS_FAST
    best = min((time for time in times if time.seconds <= enough), key=lambda time: time.threads)
    others = "; ".join(
        f"{time.precision} with {time.threads}: {time.seconds * 1000:.1f}" for time in times if time != best
    )
    free = hardware.cores_usable - best.threads
    measured = f"an update takes {best.seconds * 1000:.1f} ms"
    return (
        _device_setting(hardware),
        Setting(key="OMP_NUM_THREADS", value=str(best.threads), reason=f"{measured} ({others})"),
        Setting(
            key="system.workers",
            value=str(free),
            reason="the cores that learning does not use" if free else "learning is faster with every core",
        ),
        Setting(key="learner.precision", value=f'"{best.precision}"', reason="a track with fp32 keeps it"),
    )


def _device_setting(hardware: Hardware) -> Setting:
    if hardware.gpus:
        return Setting(key="--device", value="cuda", reason=f"{hardware.gpus[0].name}")
    return Setting(key="--device", value="cpu", reason="no GPU that torch can use")


def _workers_setting(hardware: Hardware) -> Setting:
    if hardware.gpus and hardware.cores_usable > 1:
        reason = "for many environments: one core feeds the GPU, one does everything else, the others emulate"
        return Setting(key="system.workers", value=str(max(1, hardware.cores_usable - 2)), reason=reason)
    return Setting(
        key="system.workers", value="0", reason="emulation takes a few percent; learning needs the cores"
    )


def _precision_setting(hardware: Hardware) -> Setting:
    choice = precision_for("cuda" if hardware.gpus else "cpu", hardware)
    exception = "; a track with fp32 keeps it" if choice.value == "bf16" else ""
    return Setting(key=choice.key, value=f'"{choice.value}"', reason=f"{choice.reason}{exception}")
