"""Choose and configure the devices of a run."""

from __future__ import annotations

import platform
import re
import sys
from typing import TYPE_CHECKING

from atari_dqn.errors import UserError
from atari_dqn.machine.sizes import replay_is_on_gpu

if TYPE_CHECKING:
    import torch

    from atari_dqn.machine.hardware import Hardware

BF16_CAPABILITY = (8, 0)
"""CUDA compute capability from which a GPU multiplies bf16."""


def check_device_name(name: str | None, *, where: str = "--device") -> None:
    """Raise a `UserError` if a name is not of the form `auto`, `cpu`, `cuda` or `cuda:N`.

    `where`: the option or argument that gave it.
    """
    if name is not None and not re.fullmatch(r"auto|cpu|cuda(:\d{1,4})?", str(name), re.ASCII):
        raise UserError(f"{where}: found {name!r}, expected auto, cpu, cuda or cuda:N")


def cuda_index(device: str) -> int:
    """Parse N of `cuda:N`; 0 for `cuda`."""
    return int(device.partition(":")[2] or 0)


def resolve_device(name: str, *, where: str = "--device") -> torch.device:
    """Return the device `auto`, `cpu`, `cuda` or `cuda:N`; `UserError` if it is not available.

    `where`: the option or argument that gave it.
    """
    check_device_name(name, where=where)
    import torch

    found = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if name == "cpu" or (name == "auto" and not found):
        return torch.device("cpu")
    index = cuda_index(name)
    if index >= found:
        raise UserError(f"device {name!r} is not available: found {found} CUDA devices; use {where} cpu")
    return torch.device("cuda", index)


def make_current(device: torch.device) -> None:
    """Make a run's GPU the current one, on which streams, events and graphs are created."""
    import torch

    if device.type == "cuda":
        torch.cuda.set_device(device)


def set_kernels(device: torch.device, *, threads: int, deterministic: bool) -> None:
    """Set the number of torch's threads, disable TF32 on a GPU and select its kernels, for the whole process.

    With `deterministic`, only deterministic kernels are used; otherwise those that cuDNN's autotuner finds
    fastest (docs/decisions/0027-repeatable-on-a-gpu.md). On a CPU torch is deterministic for a fixed number
    of threads. On Apple silicon NNPACK is disabled: PyTorch selects it for convolutions of 16 images or more,
    where it is several times slower than the alternative.
    """
    import torch

    torch.set_num_threads(threads)
    if (sys.platform, platform.machine()) == ("darwin", "arm64"):
        torch.backends.nnpack.set_flags(False)  # type: ignore[no-untyped-call]
    if device.type == "cuda":
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False
        torch.backends.cudnn.benchmark = not deterministic
        torch.backends.cudnn.deterministic = deterministic


def check_precision(precision: str, device: torch.device) -> None:
    """Raise a `UserError` for bf16 on a GPU without it. Every CPU supports bf16, if slowly."""
    import torch

    if precision != "bf16" or device.type != "cuda":
        return
    capability = torch.cuda.get_device_capability(device)
    if capability < BF16_CAPABILITY:
        raise UserError(
            f"learner.precision is 'bf16', but {device} has compute capability {_dotted(capability)}, "
            f"and bf16 needs {_dotted(BF16_CAPABILITY)}; set it to 'fp32'"
        )


def _dotted(capability: tuple[int, int]) -> str:
    return f"{capability[0]}.{capability[1]}"


def replay_device(choice: str, *, learner: torch.device, needed_bytes: int) -> torch.device:
    """Return the device that stores the replay: for `auto` the learner's if the run fits there, else RAM.

    `needed_bytes`: of replay and learner; what this process holds already is part of them.
    `UserError` for `cuda` if the learner has no GPU.
    """
    import torch

    if choice == "cuda" and learner.type != "cuda":
        raise UserError(f"replay.device is 'cuda', but the run is on {learner}; set it to 'auto' or 'cpu'")
    if choice == "cpu" or learner.type == "cpu":
        return torch.device("cpu")
    free = torch.cuda.mem_get_info(learner)[0] + torch.cuda.memory_reserved(learner)
    on_gpu = replay_is_on_gpu(choice, needed_bytes=needed_bytes, free_bytes=free)
    return learner if on_gpu else torch.device("cpu")


def planned_replay_device(choice: str, device: str, needed_bytes: int, hardware: Hardware) -> str:
    """Return the device on which `replay_device` will put the replay: `cpu`, or the learner's GPU.

    It is the GPU if `choice` is `cuda`, or if it is `auto` and `needed_bytes` fit into its free memory.
    """
    if device == "cpu":
        return "cpu"
    free = hardware.gpus[cuda_index(device)].memory_free_bytes
    return device if replay_is_on_gpu(choice, needed_bytes=needed_bytes, free_bytes=free) else "cpu"
