"""Which settings suit a machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from atari_dqn.machine.automatic import precision_for
from atari_dqn.machine.hardware import Hardware

if TYPE_CHECKING:  # it imports torch, which may be what is missing
    from atari_dqn.bench.update_times import UpdateTime

_NEARLY_AS_QUICK = 1.05


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One key, the value that suits this machine, and why."""

    key: str
    value: str
    reason: str


def recommend(hardware: Hardware) -> tuple[Setting, ...]:
    """Return the settings that suit a machine, by what it has."""
    return (_device_setting(hardware), _workers_setting(hardware), _precision_setting(hardware))


def recommend_for(times: Sequence[UpdateTime], hardware: Hardware) -> tuple[Setting, ...]:
    """Return the settings that suit a machine without a GPU, by how long its updates take."""
    least = min(times, key=lambda time: time.seconds)
    # as few threads as do nearly as well: the cores that are left emulate
    enough = least.seconds * _NEARLY_AS_QUICK
    best = min((time for time in times if time.seconds <= enough), key=lambda time: time.threads)
    others = "; ".join(
        f"{time.precision} with {time.threads}: {time.seconds * 1000:.1f}" for time in times if time != best
    )
    free = hardware.cores_usable - best.threads
    shown = f"an update takes {best.seconds * 1000:.1f} ms"
    return (
        _device_setting(hardware),
        Setting(key="OMP_NUM_THREADS", value=str(best.threads), reason=f"{shown} ({others})"),
        Setting(
            key="system.workers",
            value=str(free),
            reason="the cores that learning leaves" if free else "learning is quicker with every core",
        ),
        Setting(
            key="learner.precision", value=f'"{best.precision}"', reason="a track that says fp32 keeps it"
        ),
    )


def _device_setting(hardware: Hardware) -> Setting:
    if hardware.gpus:
        return Setting(key="--device", value="cuda", reason=f"{hardware.gpus[0].name}")
    return Setting(key="--device", value="cpu", reason="no GPU that torch can use")


def _workers_setting(hardware: Hardware) -> Setting:
    if hardware.gpus and hardware.cores_usable > 1:
        reason = "for runs of many environments: a core feeds the GPU, one does all else, the others emulate"
        return Setting(key="system.workers", value=str(max(1, hardware.cores_usable - 2)), reason=reason)
    return Setting(
        key="system.workers", value="0", reason="emulation takes a few percent; learning needs the cores"
    )


def _precision_setting(hardware: Hardware) -> Setting:
    choice = precision_for("cuda" if hardware.gpus else "cpu", hardware)
    kept = "; a track that says fp32 keeps it" if choice.value == "bf16" else ""
    return Setting(key=choice.key, value=f'"{choice.value}"', reason=f"{choice.reason}{kept}")
