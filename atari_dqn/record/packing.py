"""Encode arrays as text, so that a recording is one JSON file."""

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
    """Encode an array exactly as plain data: dtype, shape, and compressed bytes in base64."""
    data = zlib.compress(np.ascontiguousarray(array).tobytes(), level=6)
    return {"dtype": array.dtype.str, "shape": list(array.shape), "zlib": base64.b64encode(data).decode()}


def unpack(packed: dict[str, Any]) -> NDArray[Any]:
    """Decode an array encoded by `pack`; raise `ValueError` if the bytes do not match the shape."""
    dtype, shape = np.dtype(packed["dtype"]), tuple(packed["shape"])
    size = dtype.itemsize * math.prod(shape)
    if dtype.hasobject or not 0 <= size <= _MOST_BYTES:
        raise ValueError(f"found {dtype} of shape {shape}, expected up to {_MOST_BYTES:,} bytes of numbers")
    inflate = zlib.decompressobj()
    data = inflate.decompress(base64.b64decode(packed["zlib"]), size + 1)
    return np.frombuffer(data, dtype).reshape(shape)


def digits(numbers: NDArray[Any]) -> str:
    """Encode numbers below 36 as one digit each (`a` for 10), so that the actions of a game are one line."""
    return "".join(_DIGITS[number] for number in numbers.tolist())


def undigits(text: str) -> NDArray[np.uint8]:
    """Decode numbers encoded by `digits`."""
    return np.array([_DIGITS.index(digit) for digit in text], np.uint8)
