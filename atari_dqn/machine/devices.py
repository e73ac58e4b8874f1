"""Which device a run computes on."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from atari_dqn.errors import UserError
from atari_dqn.machine.sizes import replay_is_beside

if TYPE_CHECKING:
    import torch

BF16_CAPABILITY = (8, 0)
"""CUDA compute capability from which a GPU multiplies bf16."""


def check_device_name(name: str | None) -> None:
    """Raise a `UserError` for what names no device, here or anywhere."""
    if name is not None and not re.fullmatch(r"auto|cpu|cuda(:\d{1,4})?", name, re.ASCII):
        raise UserError(f"--device: found {name!r}, expected auto, cpu, cuda or cuda:N")


def cuda_index(device: str) -> int:
    """Return N of `cuda:N`, 0 of `cuda`."""
    return int(device.partition(":")[2] or 0)


def resolve_device(name: str) -> torch.device:
    """Return the device called `auto`, `cpu`, `cuda` or `cuda:N`; `UserError` where it is not there."""
    check_device_name(name)
    import torch

    found = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if name == "cpu" or (name == "auto" and not found):
        return torch.device("cpu")
    index = cuda_index(name)
    if index >= found:
        raise UserError(f"device {name!r} is not there: found {found} CUDA devices; --device cpu works")
    return torch.device("cuda", index)


def make_current(device: torch.device) -> None:
    """Have streams, events and graphs be made on a run's GPU, which need not be the first."""
    import torch

    if device.type == "cuda":
        torch.cuda.set_device(device)


def set_kernels(device: torch.device, *, deterministic: bool) -> None:
    """Have a GPU round as the spec says, without TF32, and choose its kernels.

    Deterministic: the same each time, and none whose rounding depends on timing. Otherwise whichever an
    autotuner finds quickest (docs/decisions/0027-repeatable-on-a-gpu.md). On a CPU torch repeats for a number
    of threads by itself; but until one is set, MKL may take fewer where it sees fit. Process-wide.
    """
    import torch

    torch.set_num_threads(torch.get_num_threads())
    if device.type == "cuda":
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False
        torch.backends.cudnn.benchmark = not deterministic
        torch.backends.cudnn.deterministic = deterministic


def check_precision(precision: str, device: torch.device) -> None:
    """Refuse bf16, with a `UserError`, on a GPU that cannot multiply it. Every CPU can, if slowly."""
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
    """Return where the replay lives: `auto` is the learner's device if it fits there, else RAM.

    `UserError` for `cuda` where the learner has no GPU.
    """
    import torch

    if choice == "cuda" and learner.type != "cuda":
        raise UserError(f"replay.device is 'cuda', but the run is on {learner}; set it to 'auto' or 'cpu'")
    if choice == "cpu" or learner.type == "cpu":
        return torch.device("cpu")
    free, _ = torch.cuda.mem_get_info(learner)
    beside = replay_is_beside(choice, needed_bytes=needed_bytes, free_bytes=free)
    return learner if beside else torch.device("cpu")
