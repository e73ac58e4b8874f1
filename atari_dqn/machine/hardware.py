"""What this machine has, and how much of it this process may use."""

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
"""Instruction sets that decide how fast a network runs here: four of x86's, one of ARM's."""
_BLOCK_BYTES = 512
"""Unit of `st_blocks`, whatever the file system's own block is."""


@dataclass(frozen=True, kw_only=True)
class Gpu:
    """One accelerator."""

    name: str
    memory_bytes: int
    memory_free_bytes: int
    capability: tuple[int, int]
    """CUDA compute capability; bf16 is native from (8, 0)."""


@dataclass(frozen=True, kw_only=True)
class Hardware:
    """A machine as one process sees it: what is there, cut to what its container allows."""

    cpu_model: str
    cores_physical: int
    cores_logical: int
    cores_usable: int
    """Logical cores this process may run on, and whose time it is granted."""
    cpu_flags: tuple[str, ...] | None
    """Which of the instruction sets that matter are there; None where the system does not tell."""
    memory_bytes: int
    memory_available_bytes: int
    disk_free_bytes: int
    shared_memory_free_bytes: int | None
    """Room for arrays shared between processes; None where the system has no folder for them."""
    gpus: tuple[Gpu, ...]

    @property
    def fast_bf16(self) -> bool | None:
        """The CPU multiplies bf16 in hardware; None where the system does not tell."""
        if self.cpu_flags is None:
            return None
        return bool({"avx512_bf16", "amx_bf16", "bf16"} & set(self.cpu_flags))


def find_hardware(path: Path, groups: ControlGroups | None = None) -> Hardware:
    """Return this machine's hardware; the disk is the one that `path` is on, or will be."""
    groups = groups or ControlGroups()
    memory = psutil.virtual_memory()
    return Hardware(
        cpu_model=cpu_model(),
        cores_physical=psutil.cpu_count(logical=False) or 1,
        cores_logical=psutil.cpu_count() or 1,
        cores_usable=usable_cores(groups),
        cpu_flags=cpu_flags(),
        memory_bytes=_smallest(memory.total, groups.memory_bytes()),
        memory_available_bytes=_smallest(memory.available, groups.memory_left_bytes()),
        disk_free_bytes=disk_free_bytes(path),
        shared_memory_free_bytes=shared_memory_free_bytes(),
        gpus=find_gpus(),
    )


def usable_cores(groups: ControlGroups) -> int:
    """Return how many cores this process may use: its affinity mask, cut to its container's share of time."""
    affinity = getattr(os, "sched_getaffinity", None)  # macOS has none
    allowed = len(affinity(0)) if affinity else os.cpu_count() or 1
    granted = groups.cores()
    return allowed if granted is None else max(1, min(allowed, math.ceil(granted)))


def cpu_model(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """Return the processor's name as its maker gives it, or else its architecture."""
    return _cpuinfo_field(cpuinfo, "model name") or platform.processor() or platform.machine() or "unknown"


def cpu_vendor(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """Return the processor's maker as it names itself; nothing where the system does not tell."""
    return _cpuinfo_field(cpuinfo, "vendor_id")


def cpu_flags(cpuinfo: Path = Path("/proc/cpuinfo")) -> tuple[str, ...] | None:
    """Return which of the instruction sets that matter are there; None where the system does not tell."""
    told = _cpuinfo_field(cpuinfo, "flags") or _cpuinfo_field(cpuinfo, "Features")  # x86 and ARM
    found = set(told.split())
    return tuple(flag for flag in _FLAGS if flag in found) if told else None


def disk_free_bytes(path: Path) -> int:
    """Return the room left for us on the disk of `path`, or of its nearest parent that exists."""
    place = path.absolute()
    while not exists(place) and place != place.parent:
        place = place.parent
    return shutil.disk_usage(place).free


def allocated_bytes(folder: Path) -> int:
    """Return the disk space that the files below a folder take; one with several hard links counts once."""
    blocks: dict[int, int] = {}
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):  # another process may be deleting an old checkpoint
                found = os.lstat(os.path.join(place, name))  # noqa: PTH118 - a str of os.walk
                blocks[found.st_ino] = found.st_blocks
    return sum(blocks.values()) * _BLOCK_BYTES


def shared_memory_free_bytes(folder: Path = Path("/dev/shm")) -> int | None:  # noqa: S108 - only measured
    """Return the room for shared memory; None where the system keeps it elsewhere."""
    return shutil.disk_usage(folder).free if folder.is_dir() else None


def compiler_name() -> str:
    """Return the C++ compiler that PyTorch compiles with: what CXX names, else the system's usual one."""
    return os.environ.get("CXX", "clang++" if platform.system() == "Darwin" else "g++")


def has_compiler() -> bool:
    """Return whether that compiler is here."""
    return shutil.which(compiler_name()) is not None


def compiler_version() -> str | None:
    """Return what that compiler calls itself; None where it is not here or does not say."""
    path = shutil.which(compiler_name())
    if path is None:
        return None
    try:
        said = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=10)  # noqa: S603 - no shell
    except (OSError, subprocess.TimeoutExpired):
        return None
    return said.stdout.partition("\n")[0] or None


def find_gpus() -> tuple[Gpu, ...]:
    """Return the CUDA devices that torch sees; none where torch is missing, broken or built without CUDA."""
    try:
        import torch
    except (ImportError, OSError):  # not installed, or without its libraries
        return ()
    return tuple(_gpu(index) for index in range(torch.cuda.device_count()))


def _gpu(index: int) -> Gpu:
    import torch

    free, total = torch.cuda.mem_get_info(index)
    name, capability = torch.cuda.get_device_name(index), torch.cuda.get_device_capability(index)
    return Gpu(name=name, memory_bytes=total, memory_free_bytes=free, capability=capability)


def _cpuinfo_field(cpuinfo: Path, field: str) -> str:
    try:
        lines = cpuinfo.read_text(errors="replace").splitlines()
    except OSError:
        return ""
    values = (line.partition(":") for line in lines)
    return next((value.strip() for name, _, value in values if name.strip() == field), "")


def _smallest(value: int, limit: int | None) -> int:
    return value if limit is None else min(value, limit)
