"""Recommend settings for a machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from atari_dqn.machine.automatic import Choice, Machine, resolve_auto
from atari_dqn.machine.hardware import Hardware
from atari_dqn.spec.check import show
from atari_dqn.spec.constraints import AUTO
from atari_dqn.spec.keys import AUTO_KEYS, Scalar, build
from atari_dqn.spec.loader import ResolvedSpec
from atari_dqn.spec.tracks import load_track

if TYPE_CHECKING:  # it imports torch, which may be missing
    from atari_dqn.bench.update_times import UpdateTime

_NEARLY_AS_FAST = 1.05
_MANY_ENVS = 64


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A recommended value for a key or option, with the reason."""

    key: str
    value: str
    reason: str


def recommend(hardware: Hardware, has_kernels: Callable[[], bool]) -> tuple[Setting, ...]:
    """Recommend the values that `auto` has on a machine, for the paper's network and many environments."""
    overrides: dict[str, Scalar] = {"game": "pong", "seed": 1, "env.num_envs": _MANY_ENVS}
    overrides |= dict.fromkeys(AUTO_KEYS, AUTO)
    spec = build({**load_track("A"), **overrides})
    device = "cuda" if hardware.gpus else "cpu"
    machine = Machine(device=device, hardware=hardware, has_kernels=has_kernels)
    _, choices = resolve_auto(ResolvedSpec(spec=spec, name="", deviations=()), machine)
    return (_device_setting(hardware), *map(_setting, choices))


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
        Setting(key="learner.threads", value=str(best.threads), reason=f"{measured} ({others})"),
        Setting(
            key="system.workers",
            value=str(free or min(1, best.threads - 1)),
            reason="the cores that learning does not use" if free else "it emulates while threads wait",
        ),
        Setting(key="learner.precision", value=f'"{best.precision}"', reason="a track with fp32 keeps it"),
    )


def _device_setting(hardware: Hardware) -> Setting:
    if hardware.gpus:
        return Setting(key="--device", value="cuda", reason=f"{hardware.gpus[0].name}")
    return Setting(key="--device", value="cpu", reason="no GPU that torch can use")


def _setting(choice: Choice) -> Setting:
    exception = "; a track with fp32 keeps it" if choice.value == "bf16" else ""
    return Setting(key=choice.key, value=show(choice.value), reason=f"{choice.reason}{exception}")
