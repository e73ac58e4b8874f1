"""Read and write arrays as `.npy` files; headers are checked before memory is allocated."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from atari_dqn.errors import DamagedError
from atari_dqn.files.atomic import open_regular
from atari_dqn.files.documents import reading_of_run
from atari_dqn.run.checkpoint.layout import ArrayLayout

_MOST_HEADER_CHARACTERS = 1_000
"""Enough for the header of a simple dtype and shape."""


def write_array(path: Path, array: np.ndarray) -> None:
    """Write an `.npy` file. `np.save` would hide the cause of a failed write, such as a full disk."""
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(array))
        file.write(array.reshape(-1).view(np.uint8).data)


def read_array(path: Path, layout: ArrayLayout | None) -> np.ndarray:
    """Read an array; raise `DamagedError` if it does not have the layout (None accepts any layout)."""
    with reading_of_run(path), open_regular(path) as file:
        try:
            dtype, shape, fortran_order = _read_header(file)
            _check(path, dtype, shape, layout)
            size = math.prod(shape)
            if os.fstat(file.fileno()).st_size - file.tell() != size * dtype.itemsize:
                raise ValueError(f"it does not hold {dtype} of shape {shape}, as its header says")
            array: np.ndarray = np.fromfile(file, dtype, size).reshape(
                shape, order="F" if fortran_order else "C"
            )
        except ValueError as error:
            raise DamagedError(f"{path}: cannot be read as an array: {error}") from error
    return array


def _read_header(file: BinaryIO) -> tuple[np.dtype[Any], tuple[int, ...], bool]:
    """Read dtype, shape and whether the order is Fortran's; raise `ValueError` for an invalid header."""
    try:
        version = np.lib.format.read_magic(file)
        if version != (1, 0):
            raise ValueError(f"version {version} of the format, expected (1, 0)")
        shape, fortran_order, dtype = np.lib.format.read_array_header_1_0(file, _MOST_HEADER_CHARACTERS)
    except (ValueError, OSError):  # an OSError of the disk is not damage
        raise
    except Exception as error:  # NumPy evaluates the header, which can raise any exception
        raise ValueError(f"its header is not that of an array ({type(error).__name__})") from error
    if dtype.hasobject or not dtype.itemsize or min(shape, default=0) < 0:
        raise ValueError(f"found {dtype} of shape {shape}, expected numbers")
    return dtype, shape, fortran_order


def _check(path: Path, dtype: np.dtype[Any], shape: tuple[int, ...], layout: ArrayLayout | None) -> None:
    if layout is not None and not layout.allows(dtype, shape):
        raise DamagedError(f"{path}: found {dtype} of shape {shape}, expected {layout}")
