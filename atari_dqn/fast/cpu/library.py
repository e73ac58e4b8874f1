"""The compiled kernels: loading those for this processor's instruction set."""

from __future__ import annotations

import ctypes
import os
import platform
import sys
import zlib
from collections.abc import Sequence
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from itertools import product
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from atari_dqn.errors import UserError
from atari_dqn.machine.hardware import cpu_flags

FOLDER = Path(__file__).parent
_ADDRESS, _COUNT, _CHOICE = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int
_NUMBER, _WIDE = ctypes.c_float, ctypes.c_double
_LAYER = (_ADDRESS, _ADDRESS)  # values and shape, or values and weight
# unit, images with their type and order, layers, weights
_STACK = (_CHOICE, _ADDRESS, _CHOICE, _CHOICE, _ADDRESS, _COUNT, _ADDRESS)
_TREE = (_ADDRESS, _ADDRESS, _COUNT, _COUNT)  # sums, minima, levels, fan-out
_PRODUCT = (_COUNT, _COUNT, _COUNT)  # rows, inputs, outputs
_Types = tuple[type["ctypes._SimpleCData[Any]"], ...]
_FACTORS: _Types = (_CHOICE, *[_ADDRESS] * 2, *[_COUNT] * 3, *[_ADDRESS] * 2)  # unit, factors, sizes, noise
_FUNCTIONS: dict[str, dict[str, tuple[Any, _Types]]] = {
    "threads": {"kernel_sources": (ctypes.c_uint, ()), "pool_of": (_ADDRESS, (_ADDRESS,))},
    "portable": {
        "kernel_sources": (ctypes.c_uint, ()),
        "use_pool": (None, (_ADDRESS,)),
        "norm": (ctypes.c_double, (_ADDRESS, _ADDRESS, _COUNT)),
        "rmsprop": (None, (*[_ADDRESS] * 5, _COUNT, *[_NUMBER] * 5)),
        "adam": (None, (*[_ADDRESS] * 5, _COUNT, *[_NUMBER] * 6)),
        "gather_stacks": (ctypes.c_bool, (*_LAYER, *[_COUNT] * 4, _ADDRESS, _COUNT, _ADDRESS)),
        "find_indices": (None, (_ADDRESS, _COUNT, _COUNT, _ADDRESS, _COUNT, _ADDRESS)),
        "draw_indices": (None, (*_TREE, _ADDRESS, _COUNT, _COUNT, _WIDE, _ADDRESS, _ADDRESS)),
        "set_priorities": (ctypes.c_bool, (*_TREE, _COUNT, _ADDRESS, _ADDRESS, _COUNT)),
        "set_by_errors": (
            ctypes.c_bool,
            (*_TREE, _COUNT, _ADDRESS, _ADDRESS, _COUNT, _WIDE, _WIDE, _ADDRESS),
        ),
    },
    "products": {
        "kernel_sources": (ctypes.c_uint, ()),
        "use_pool": (None, (_ADDRESS,)),
        "units": (ctypes.c_int, ()),
        "block": (ctypes.c_int, ()),
        "encode": (None, (*_STACK, *[_ADDRESS] * 3)),
        "encode_backward": (None, (*_STACK, *[_ADDRESS] * 5)),
        "forward": (None, (*_STACK, *[_ADDRESS] * 3, _COUNT, _COUNT, *[_ADDRESS] * 2)),
        "backward": (None, (*_STACK, _ADDRESS, _COUNT, *[_ADDRESS] * 6)),
        "step_by_product": (None, (*_FACTORS, _NUMBER, _ADDRESS, _CHOICE, _ADDRESS)),
        "squares_of_product": (ctypes.c_double, _FACTORS),
        "multiply": (None, (_CHOICE, *_LAYER, _ADDRESS, *_PRODUCT, _CHOICE, _ADDRESS)),
        "multiply_noisy": (None, (_CHOICE, *[_ADDRESS] * 7, *_PRODUCT, _CHOICE, _ADDRESS)),
        "multiply_noisy_backward": (None, (_CHOICE, *[_ADDRESS] * 6, *_PRODUCT, *[_ADDRESS] * 5)),
        "multiply_backward": (None, (_CHOICE, *_LAYER, _ADDRESS, *_PRODUCT, *[_ADDRESS] * 3)),
    },
}
"""The functions of each library, with the types of their result and arguments, as in the C++ sources."""
UNITS = ("fp32 vectors", "bf16 vectors", "bf16 tiles")
"""The ways to add up products, in the order of the kernels' enum; the last two need AVX512_BF16 and AMX."""
INSTRUCTION_SETS = {"avx512": "AVX-512", "avx2": "AVX2", "neon": "NEON"}
"""What the products are compiled for, best first, with its written name."""
OVERRIDE = "ATARI_DQN_ISA"
"""The environment variable that chooses one of `INSTRUCTION_SETS`, or `none`: no compiled kernels."""
_FLAGS = {"avx512": "avx512f", "avx2": "avx2"}
"""By which a system reports that a processor has an instruction set, best first; NEON needs no flag."""


@cache
def library(name: str) -> ctypes.CDLL | None:
    """Load a compiled library, `portable` or `products`, for `instruction_set()`; None if there is none.

    pip could not compile it, it has a `load_error`, or `ATARI_DQN_ISA` is `none`. `UserError` if it was
    compiled from other sources than those next to it, because its results would be unknown.
    """
    chosen = instruction_set()
    if chosen == "none":
        return None
    found = _load(f"{name}_{chosen}", name) if chosen else None
    return found if found is not None or name != "portable" else _load(name, name)


@cache
def instruction_set() -> str | None:
    """Choose the best instruction set that was compiled and that this processor has; None if there is none.

    `ATARI_DQN_ISA` chooses another. `UserError` if that is not available.
    """
    asked = os.environ.get(OVERRIDE)
    if asked == "none":  # without loading a library, which could be one of other sources
        return asked
    available = [name for name in INSTRUCTION_SETS if _bits(name)]
    if not asked:
        return next(iter(available), None)
    if asked not in available:
        here = ", ".join([*available, "none"])
        raise UserError(f"{OVERRIDE}={asked} is not available on this machine; available: {here}")
    return asked


def _bits(name: str) -> int:
    found = _load(f"products_{name}", "products")
    return 0 if found is None else int(found.units())


@cache
def _load(file: str, functions: str) -> ctypes.CDLL | None:
    for suffix in EXTENSION_SUFFIXES:
        path = FOLDER / f"_{file}{suffix}"
        if path.exists():
            try:
                found = ctypes.CDLL(str(path))
            except OSError:
                return None
            _check_sources(found, path)
            for function, (returned, taken) in _FUNCTIONS[functions].items():
                getattr(found, function).restype = returned
                getattr(found, function).argtypes = taken
            if functions != "threads":
                found.use_pool(_pool())
            return found
    return None


@cache
def _pool() -> int | None:
    """Return the address of the threads that share the kernels' loops, None if there is one thread.

    Each loop asks OpenMP how many there are in the Python thread that calls it: `OMP_NUM_THREADS`, or what
    `torch.set_num_threads` set, which another Python thread takes over at its first parallel operation of
    PyTorch. The number does not change results.
    """
    found, count = _load("threads", "threads"), getattr(ctypes.CDLL(None), "omp_get_max_threads", None)
    if found is None or count is None:
        return None
    return found.pool_of(count)  # type: ignore[no-any-return]


def _check_sources(found: ctypes.CDLL, path: Path) -> None:
    """Raise `UserError` if a library was compiled from other sources; an installed wheel has no sources."""
    sources = sorted(FOLDER.glob("*.?pp"))
    here = zlib.crc32(b"".join(source.read_bytes() for source in sources))
    function = getattr(found, "kernel_sources", None)
    if sources and (function is None or function() & 0xFFFFFFFF != here):
        raise UserError(
            f"{path.name} was compiled from other sources than those next to it; install again: "
            f"pip install -e .; to go on without compiled kernels, which is slower: set {OVERRIDE}=none"
        )


@cache
def units() -> tuple[str, ...]:
    """List the available `UNITS`; none without compiled kernels or on other processors."""
    chosen = instruction_set()
    bits = 0 if chosen in (None, "none") else _bits(chosen)
    return tuple(name for bit, name in enumerate(UNITS) if bits >> bit & 1)


@cache
def size_divisor() -> int:
    """Return the divisor that layers' sizes must have: 32 with AVX-512, 16 with AVX2, 8 with NEON."""
    found = library("products")
    return 32 if found is None else int(found.block())


def unit_for(dtype: torch.dtype) -> int | None:
    """Return the number of the fastest available unit for a dtype, or None."""
    return _unit_for(dtype)


@cache
def _unit_for(dtype: torch.dtype) -> int | None:
    return _quickest(units(), {torch.float32: "fp32", torch.bfloat16: "bf16"}.get(dtype, "none"))


def _quickest(kernels: Sequence[str], precision: str) -> int | None:
    found = [UNITS.index(_unit_of(name)) for name in kernels if name.startswith(precision)]
    return max(found, default=None)


def libraries_lacking() -> tuple[str, ...]:
    """List the libraries that should have been compiled on this system but cannot be loaded."""
    has_kernels = sys.platform in ("linux", "darwin")
    has_products = has_kernels and platform.machine().lower() in ("x86_64", "amd64", "aarch64", "arm64")
    meant = {"threads": has_kernels, "portable": has_kernels, "products": has_products}
    return tuple(name for name, is_meant in meant.items() if is_meant and not _is_compiled(name))


def _is_compiled(name: str) -> bool:
    """Return whether a library can be loaded in any variant, for this processor or not."""
    return any(_load(file, name) is not None for file in _variants(name))


def load_error(name: str) -> str | None:
    """Return the loader's error for a library that was compiled but cannot be loaded; None if there is none.

    It may need a newer C++ runtime library than the one in this environment.
    """
    for file, suffix in product(_variants(name), EXTENSION_SUFFIXES):
        path = FOLDER / f"_{file}{suffix}"
        try:
            if path.exists():
                ctypes.CDLL(str(path))
        except OSError as error:
            return str(error)
    return None


def _variants(name: str) -> tuple[str, ...]:
    return name, *(f"{name}_{each}" for each in INSTRUCTION_SETS)


def instruction_set_lacking() -> str | None:
    """Return the written name of this processor's best instruction set if it has no kernels, else None."""
    flags = cpu_flags() or ()
    best = next((name for name, flag in _FLAGS.items() if flag in flags), None)
    return None if best is None or _bits(best) else INSTRUCTION_SETS[best]


def kernels_here() -> tuple[str, ...]:
    """List the available kernels; they round differently from PyTorch's, and from one another."""
    portable = ("portable",) if library("portable") is not None else ()
    return (*(_name(unit, instruction_set()) for unit in units()), *portable)


def uses_threads() -> bool:
    """Return whether several threads share the kernels' loops: PyTorch must have OpenMP."""
    return library("portable") is not None and _pool() is not None


def kernels_for(precision: str, kernels: Sequence[str]) -> list[str]:
    """Select the kernels that a run in this precision, fp32 or bf16, uses."""
    quickest = _quickest(kernels, precision)
    return [
        name for name in kernels if _unit_of(name) not in UNITS or UNITS.index(_unit_of(name)) == quickest
    ]


def _name(unit: str, chosen: str | None) -> str:
    """Name a unit as provenance records it: AVX-512's have no suffix, as they were the first."""
    return unit if chosen in (None, "avx512") else f"{unit} of {INSTRUCTION_SETS[chosen]}"


def _unit_of(name: str) -> str:
    return name.partition(" of ")[0]


def pointers(tensors: Sequence[Tensor]) -> ctypes.Array[ctypes.c_void_p]:
    """Make a C array of the tensors' addresses."""
    return (ctypes.c_void_p * len(tensors))(*(tensor.data_ptr() for tensor in tensors))


def integers(values: Sequence[int]) -> ctypes.Array[ctypes.c_int64]:
    """Make a C array of integers."""
    return (ctypes.c_int64 * len(values))(*values)


def numbers(values: Sequence[float]) -> ctypes.Array[ctypes.c_float]:
    """Make a C array of fp32 numbers."""
    return (ctypes.c_float * len(values))(*values)
