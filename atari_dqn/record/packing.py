"""Arrays as text, so that a recording is one JSON file."""

from __future__ import annotations

import base64
import math
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

_MOST_BYTES = 2**30
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def pack(array: NDArray[Any]) -> dict[str, Any]:
    """Return an array as plain data, exact to the bit: dtype, shape, and compressed bytes in base 64."""
    data = zlib.compress(np.ascontiguousarray(array).tobytes(), level=6)
    return {"dtype": array.dtype.str, "shape": list(array.shape), "zlib": base64.b64encode(data).decode()}


def unpack(packed: dict[str, Any]) -> NDArray[Any]:
    """Return the array that `pack` was given; `ValueError` where the bytes are not those of its shape."""
    dtype, shape = np.dtype(packed["dtype"]), tuple(packed["shape"])
    size = dtype.itemsize * math.prod(shape)
    if dtype.hasobject or not 0 <= size <= _MOST_BYTES:
        raise ValueError(f"found {dtype} of shape {shape}, expected up to {_MOST_BYTES:,} bytes of numbers")
    inflate = zlib.decompressobj()
    data = inflate.decompress(base64.b64decode(packed["zlib"]), size + 1)
    return np.frombuffer(data, dtype).reshape(shape)


def digits(numbers: NDArray[Any]) -> str:
    """Return numbers below 36 as a digit each, `a` for 10: a game's actions as one readable line."""
    return "".join(_DIGITS[number] for number in numbers.tolist())


def undigits(text: str) -> NDArray[np.uint8]:
    """Return the numbers that `digits` was given."""
    return np.array([_DIGITS.index(digit) for digit in text], np.uint8)
