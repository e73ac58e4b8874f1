"""The compiled kernels: found, loaded and told apart by processor."""

from __future__ import annotations

import ctypes
import zlib
from collections.abc import Sequence
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import torch
from torch import Tensor

from atari_dqn.errors import UserError

FOLDER = Path(__file__).parent
UNITS = ("fp32 vectors", "bf16 vectors", "bf16 tiles")
"""What adds up products: AVX-512, AVX512_BF16 and AMX, in the order that the kernels number them."""


@cache
def library(name: str) -> ctypes.CDLL | None:
    """Return one of the compiled libraries; None where pip could not compile it or torch lacks OpenMP.

    It runs in the threads of the OpenMP that torch has loaded, as many as torch is set to. `UserError` where
    it was compiled of other sources than lie beside it: what it would compute is anyone's guess.
    """
    assert torch.get_num_threads() >= 1  # torch comes first: its OpenMP has the functions left open here
    for suffix in EXTENSION_SUFFIXES:
        path = FOLDER / f"_{name}{suffix}"
        if path.exists():
            try:
                found = ctypes.CDLL(str(path))
            except OSError:
                return None
            _check_sources(found)
            return found
    return None


def _check_sources(found: ctypes.CDLL) -> None:
    """Raise unless a library is of the sources here, if these are: a package that was built has none."""
    sources = sorted(FOLDER.glob("*.?pp"))
    here = zlib.crc32(b"".join(path.read_bytes() for path in sources))
    function = getattr(found, "kernel_sources", None)
    if sources and (function is None or function() & 0xFFFFFFFF != here):
        raise UserError(
            "the compiled kernels are of other sources than these; install again: pip install -e ."
        )


@cache
def units() -> tuple[str, ...]:
    """Return which of `UNITS` the kernels have here; none without a compiler or with another processor."""
    found = library("products")
    bits = 0 if found is None else found.units()
    return tuple(name for bit, name in enumerate(UNITS) if bits >> bit & 1)


@cache
def unit_for(dtype: torch.dtype) -> int | None:
    """Return the number of the quickest unit here for a format; None where there is none."""
    name = {torch.float32: "fp32", torch.bfloat16: "bf16"}.get(dtype, "none")
    return max((UNITS.index(unit) for unit in units() if unit.startswith(name)), default=None)


def kernels_here() -> tuple[str, ...]:
    """Return which of the kernels run here: where they do, numbers are rounded otherwise than by torch's."""
    return (*units(), *(("portable",) if library("portable") is not None else ()))


def pointer(tensor: Tensor | None) -> ctypes.c_void_p:
    """Return where a tensor's values lie, for a function in C; a null pointer for none."""
    return ctypes.c_void_p(None if tensor is None else tensor.data_ptr())


def pointers(tensors: Sequence[Tensor]) -> ctypes.Array[ctypes.c_void_p]:
    """Return where each tensor's values lie."""
    return (ctypes.c_void_p * len(tensors))(*(tensor.data_ptr() for tensor in tensors))


def integers(values: Sequence[int]) -> ctypes.Array[ctypes.c_int64]:
    """Return numbers as an array in C."""
    return (ctypes.c_int64 * len(values))(*values)
