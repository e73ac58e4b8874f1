"""Detect the hardware of this machine, and how much of it this process may use."""

from __future__ import annotations

import math
import os
import platform
import shutil
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil  # type: ignore[import-untyped]

from atari_dqn.files.atomic import exists
from atari_dqn.machine.cgroup import ControlGroups

_FLAGS = ("avx2", "avx512f", "avx512_bf16", "amx_bf16", "bf16")
"""Instruction sets that determine the speed of a network on the CPU: four of x86, one of ARM."""
_GPU_DEVICES = ("nvidia*", "nvhost*", "nvgpu*", "dxg", "kfd")
"""Device files of CUDA on servers, on Tegra and in WSL, and of ROCm."""
_BLOCK_BYTES = 512
"""Unit of `st_blocks`, independent of the block size of the file system."""


@dataclass(frozen=True, kw_only=True)
class Gpu:
    """A CUDA device."""

    name: str
    memory_bytes: int
    memory_free_bytes: int
    """0 for a GPU that other processes have filled."""
    capability: tuple[int, int]
    """CUDA compute capability; bf16 is native from (8, 0)."""


@dataclass(frozen=True, kw_only=True)
class Hardware:
    """The hardware of a machine that a process may use, within the limits of its container."""

    cpu_model: str
    cores_physical: int
    """Physical cores within this process's affinity mask; two hyperthreads of one are one core."""
    cores_logical: int
    cores_usable: int
    """Logical cores that this process may use, within its affinity mask and its limit of processor time."""
    cpu_flags: tuple[str, ...] | None
    """The CPU's instruction sets among those that matter; None if the system does not report them."""
    memory_bytes: int
    memory_available_bytes: int
    disk_free_bytes: int
    shared_memory_free_bytes: int | None
    """Free shared memory; None if the system has no folder for it."""
    gpus: tuple[Gpu, ...]

    @property
    def fast_bf16(self) -> bool | None:
        """Whether the CPU multiplies bf16 in hardware; None if the system does not report it."""
        if self.cpu_flags is None:
            return None
        return bool({"avx512_bf16", "amx_bf16", "bf16"} & set(self.cpu_flags))


def find_hardware(path: Path, groups: ControlGroups | None = None, *, with_gpus: bool = True) -> Hardware:
    """Detect this machine's hardware; the disk is the one of `path`, which need not exist.

    `with_gpus`: detect GPUs as well, which imports torch.
    """
    groups = groups or ControlGroups()
    memory = psutil.virtual_memory()
    return Hardware(
        cpu_model=cpu_model(),
        cores_physical=physical_cores(),
        cores_logical=psutil.cpu_count() or 1,
        cores_usable=usable_cores(groups),
        cpu_flags=cpu_flags(),
        memory_bytes=_smallest(memory.total, groups.memory_bytes()),
        memory_available_bytes=_smallest(memory.available, groups.memory_left_bytes()),
        disk_free_bytes=disk_free_bytes(path),
        shared_memory_free_bytes=shared_memory_free_bytes(),
        gpus=find_gpus() if with_gpus else (),
    )


def physical_cores(cpus: Path = Path("/sys/devices/system/cpu")) -> int:
    """Count the physical cores on which this process may run; those of the machine if they are not known."""
    affinity = getattr(os, "sched_getaffinity", None)  # macOS has none
    files = [
        cpus / f"cpu{number}/topology/thread_siblings_list" for number in (affinity(0) if affinity else ())
    ]
    with suppress(OSError):
        siblings = {file.read_text() for file in files}
        if siblings:
            return len(siblings)
    return psutil.cpu_count(logical=False) or psutil.cpu_count() or 1


def usable_cores(groups: ControlGroups) -> int:
    """Compute the number of cores that this process may use, within affinity mask and container limit."""
    affinity = getattr(os, "sched_getaffinity", None)  # macOS has none
    allowed = len(affinity(0)) if affinity else os.cpu_count() or 1
    granted = groups.cores()
    return allowed if granted is None else max(1, min(allowed, math.ceil(granted)))


def cpu_model(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """Return the model name of the processor, or its architecture if the system does not report one."""
    return _cpuinfo_field(cpuinfo, "model name") or platform.processor() or platform.machine() or "unknown"


def cpu_flags(cpuinfo: Path = Path("/proc/cpuinfo")) -> tuple[str, ...] | None:
    """Return the relevant instruction sets that the CPU has; None if the system does not report them."""
    reported = _cpuinfo_field(cpuinfo, "flags") or _cpuinfo_field(cpuinfo, "Features")  # x86 and ARM
    found = set(reported.split())
    return tuple(flag for flag in _FLAGS if flag in found) if reported else None


def disk_free_bytes(path: Path) -> int:
    """Return the free space on the disk of `path`, or of its nearest parent that exists."""
    place = path.absolute()
    while not exists(place) and place != place.parent:
        place = place.parent
    return shutil.disk_usage(place).free


def allocated_bytes(folder: Path) -> int:
    """Compute the disk space of the files below a folder; a file with several hard links counts once."""
    blocks: dict[int, int] = {}
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):  # another process, perhaps of another host, deletes old checkpoints
                found = os.lstat(os.path.join(place, name))  # noqa: PTH118 - a str of os.walk
                blocks[found.st_ino] = found.st_blocks
    return sum(blocks.values()) * _BLOCK_BYTES


def shared_memory_free_bytes(folder: Path = Path("/dev/shm")) -> int | None:  # noqa: S108 - only measured
    """Return the free shared memory; None if the system has no folder for it."""
    return shutil.disk_usage(folder).free if folder.is_dir() else None


def compiler_name() -> str:
    """Return the name of the C++ compiler that PyTorch uses: that of CXX, otherwise the system's default."""
    return os.environ.get("CXX", "clang++" if platform.system() == "Darwin" else "g++")


def has_compiler() -> bool:
    """Return whether the C++ compiler that PyTorch uses is installed."""
    return shutil.which(compiler_name()) is not None


def compiler_version() -> str | None:
    """Return the version line of the C++ compiler that PyTorch uses; None if there is none."""
    path = shutil.which(compiler_name())
    if path is None:
        return None
    try:
        done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=10)  # noqa: S603 - no shell
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.partition("\n")[0] or None


def may_have_gpus(devices: Path = Path("/dev")) -> bool:
    """Return whether the system has a device file of a GPU: without one, torch need not be asked for GPUs."""
    if platform.system() != "Linux":
        return True
    return any(next(devices.glob(pattern), None) for pattern in _GPU_DEVICES)


def find_gpus() -> tuple[Gpu, ...]:
    """Return the CUDA devices of torch; none if torch is missing, broken or built without CUDA.

    Without the device files of a GPU's driver torch, whose import takes a second, is not asked.
    """
    if not may_have_gpus():
        return ()
    try:
        import torch
    except (ImportError, OSError):  # not installed, or without its libraries
        return ()
    return tuple(_gpu(index) for index in range(torch.cuda.device_count()))


def _gpu(index: int) -> Gpu:
    import torch

    found = torch.cuda.get_device_properties(index)
    try:
        free = torch.cuda.mem_get_info(index)[0]
    except RuntimeError:  # no memory is left even for a CUDA context, without which this cannot be read
        free = 0
    return Gpu(
        name=found.name,
        memory_bytes=found.total_memory,
        memory_free_bytes=free,
        capability=(found.major, found.minor),
    )


def _cpuinfo_field(cpuinfo: Path, field: str) -> str:
    try:
        lines = cpuinfo.read_text(errors="replace").splitlines()
    except OSError:
        return ""
    values = (line.partition(":") for line in lines)
    return next((value.strip() for name, _, value in values if name.strip() == field), "")


def _smallest(value: int, limit: int | None) -> int:
    return value if limit is None else min(value, limit)
