"""Resolve `auto` in a spec by fixed tables, so that the same machine always gives the same spec.

The tables have properties of the machine and of the network. Nothing is measured: `dqn doctor --measure` does
that, and advises.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path

from atari_dqn.errors import UserError
from atari_dqn.machine.devices import BF16_CAPABILITY, cuda_index
from atari_dqn.machine.hardware import Hardware, find_hardware, has_compiler
from atari_dqn.spec.check import show
from atari_dqn.spec.constraints import AUTO
from atari_dqn.spec.keys import AUTO_KEYS, Scalar, build, flatten
from atari_dqn.spec.loader import ResolvedSpec, deviating_keys
from atari_dqn.spec.schema import Spec

THREADS_VARIABLE = "OMP_NUM_THREADS"
"""The variable of OpenMP that sets its number of threads."""
_MOST_THREADS = {"data_efficient": 4, "nature": 8, "nature_layer_norm": 8, "dopamine": 8, "impala": 16}
"""The most threads that share an update, by network: more would have too little to do between waits."""
_MOST_THREADS_OF_OTHERS = 8
_SMALL = frozenset({"data_efficient"})
"""Networks with an update so small that, without kernels, more threads gain less than an idle core does."""
_BF16_NETWORKS = frozenset(_MOST_THREADS)
"""Networks that are faster in bf16 on a device that multiplies it."""
_FASTER_IN_FP32_BY_KERNELS = frozenset({"data_efficient"})
"""Networks that the kernels compute as a whole in fp32 only, which is faster than PyTorch in bf16."""
_MOST_WORKERS = 16
"""Together they emulate more frames than any learner here can use, about 250,000 a second."""
_FASTER_COMPILED = frozenset({"data_efficient"})
"""Networks for which compilation is faster than PyTorch's own functions on a processor with AVX-512."""
_FASTER_COMPILED_ON_GPU = frozenset({"impala", "nature"})
"""Networks for which compilation was measured to be much faster on a GPU: DQN's and BTR's, in bf16."""
TRITON_CAPABILITY = (7, 0)
"""CUDA compute capability from which PyTorch compiles for a GPU, by Triton."""

Decision = tuple[Scalar, str]
"""The value of a key, and the property of the machine that decided it."""


@dataclass(frozen=True, kw_only=True)
class Machine:
    """The properties of a machine that decide the values of `auto`."""

    device: str
    """`cpu`, `cuda` or `cuda:N`."""
    hardware: Hardware
    has_kernels: Callable[[], bool]
    """Whether the project's kernels of convolutions and products run here; called only if a key needs it."""
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)


@dataclass(frozen=True, kw_only=True)
class Choice:
    """The value chosen for a key, and the property of the machine that decided it."""

    key: str
    value: Scalar
    reason: str

    def __str__(self) -> str:
        """Return key, value and reason as text for the user."""
        return f"{self.key} = {show(self.value)} ({self.reason})"


def choices_text(choices: Sequence[Choice]) -> str:
    """Format the choices as one line for the user."""
    return f"chosen for this machine: {', '.join(map(str, choices))}"


def resolve_auto(resolved: ResolvedSpec, machine: Machine) -> tuple[ResolvedSpec, tuple[Choice, ...]]:
    """Replace every `auto` by its value for a machine; return the spec and the choices.

    The result, including the mark for deviations from the track, is the same as if the values had been
    written in the spec. `UserError` if OMP_NUM_THREADS is not a number.
    """
    spec, choices = resolved.spec, []
    for key in AUTO_KEYS:
        values = flatten(spec)
        if values[key] == AUTO:
            value, reason = _DECISIONS[key](spec, machine)
            choices.append(Choice(key=key, value=value, reason=reason))
            spec = build({**values, key: value})
    return replace(resolved, spec=spec, deviations=deviating_keys(flatten(spec))), tuple(choices)


def resolve_auto_here(
    resolved: ResolvedSpec, has_kernels: Callable[[], bool]
) -> tuple[ResolvedSpec, tuple[Choice, ...]]:
    """Replace every `auto` as `resolve_auto` does, for this machine and its default device."""
    hardware = find_hardware(Path.cwd())
    device = "cuda" if hardware.gpus else "cpu"
    return resolve_auto(resolved, Machine(device=device, hardware=hardware, has_kernels=has_kernels))


def why_precision_is_slow(precision: str, device: str, hardware: Hardware) -> str | None:
    """Return why a precision is slow on this machine, and the remedy; None if it is not known to be slow."""
    if precision != "bf16" or device != "cpu" or hardware.fast_bf16 is not False:
        return None
    return 'this CPU only emulates bf16; fp32 is faster here, and learner.precision = "auto" chooses it'


def _precision(spec: Spec, machine: Machine) -> Decision:
    """Choose bf16 if the device multiplies it and the network gains by it, otherwise fp32."""
    kind = spec.network.kind
    if kind not in _BF16_NETWORKS:
        return "fp32", f"whether {kind} gains by bf16 is not known"
    if machine.device != "cpu":
        gpu = machine.hardware.gpus[cuda_index(machine.device)]
        if gpu.capability >= BF16_CAPABILITY:
            return "bf16", "the GPU multiplies bf16"
        return "fp32", "the GPU does not multiply bf16"
    match machine.hardware.fast_bf16:
        case True:
            if kind in _FASTER_IN_FP32_BY_KERNELS and machine.has_kernels():
                return "fp32", "the kernels are faster in fp32"
            return "bf16", "the processor multiplies bf16"
        case False:
            return "fp32", "the processor only emulates bf16"
        case None:
            return "fp32", "the system does not say whether the processor multiplies bf16"


def _threads(spec: Spec, machine: Machine) -> Decision:
    """Choose the number of cores, but no more than share an update well, unless the user sets a number."""
    cores, wanted = machine.hardware.cores_usable, _threads_of_user(machine.environment)
    if wanted is not None:
        limit = f", and there are {cores} cores" if wanted > cores else ""
        return min(wanted, cores), f"{THREADS_VARIABLE} is {wanted}{limit}"
    if machine.device != "cpu":
        return 1, "the GPU learns"
    cores = min(cores, machine.hardware.cores_physical)  # two threads of one core are hardly faster than one
    kind = spec.network.kind
    most = _MOST_THREADS.get(kind, _MOST_THREADS_OF_OTHERS)
    spared = int(kind in _SMALL and cores > 1 and not machine.has_kernels())
    if cores - spared > most:
        return most, "more would wait for one another"
    return cores - spared, f"{_count(cores, 'core')}{', one of them left free' if spared else ''}"


def _threads_of_user(environment: Mapping[str, str]) -> int | None:
    """Return the number of threads in the environment; None if it has none."""
    text = environment.get(THREADS_VARIABLE, "").partition(",")[0].strip()  # a list is for nested loops
    if not text:
        return None
    if not text.isdecimal() or int(text) < 1:
        raise UserError(f"{THREADS_VARIABLE}: found {text!r}, expected a number of threads from 1")
    return int(text)


def _compile(spec: Spec, machine: Machine) -> Decision:
    """Choose compilation in the cases in which it was measured to be much faster."""
    if spec.replay.kind != "transitions":
        return False, f"learning from {spec.replay.kind} is not compiled"
    if spec.actors.mode != "none":
        return False, "acting in actors is not compiled"
    if machine.device != "cpu":
        return _compile_for_gpu(spec, machine)
    if spec.network.kind not in _FASTER_COMPILED or "avx512f" not in (machine.hardware.cpu_flags or ()):
        return False, "it is not known to be faster"
    if machine.has_kernels():
        return False, "the kernels are faster"
    if not has_compiler():
        return False, "there is no C++ compiler"
    return True, "the kernels are missing, and it is faster than PyTorch without them"


def _compile_for_gpu(spec: Spec, machine: Machine) -> Decision:
    gpu = machine.hardware.gpus[cuda_index(machine.device)]
    if spec.network.kind not in _FASTER_COMPILED_ON_GPU:
        return False, "it is not known to be faster"
    if gpu.capability < TRITON_CAPABILITY:
        return False, "Triton does not compile for this GPU"
    if find_spec("triton") is None:
        return False, "Triton is not installed"
    if not has_compiler():
        return False, "there is no C++ compiler"
    return True, "it was measured to be faster on a GPU"


def _workers(spec: Spec, machine: Machine) -> Decision:
    """Choose a worker for each core but one, where the main process runs; with a GPU, two cores are left.

    During a rollout the main process has nothing to learn, and leaves its core to the emulators.
    """
    envs, cores = spec.env.num_envs, machine.hardware.cores_usable
    if spec.actors.mode != "none":
        return 0, "actors step their environments themselves"
    if envs == 1 or spec.env.kind != "atari" or cores == 1:
        return 0, "one process emulates fast enough"
    learns_meanwhile = spec.replay.kind != "rollouts"
    emulating = max(1, cores - learns_meanwhile - (machine.device != "cpu"))
    if envs < min(emulating, _MOST_WORKERS):
        return envs, "one for each environment"
    if emulating > _MOST_WORKERS:
        return _MOST_WORKERS, "more emulate faster than anything learns"
    return emulating, _count(emulating, "core") + (" beyond the learner's" if learns_meanwhile else "")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"


_DECISIONS: Mapping[str, Callable[[Spec, Machine], Decision]] = {
    "learner.precision": _precision,
    "learner.threads": _threads,
    "learner.compile": _compile,
    "system.workers": _workers,
}
