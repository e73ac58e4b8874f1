"""Arrays as text, so that a recording is one JSON file."""

from __future__ import annotations

import base64
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def pack(array: NDArray[Any]) -> dict[str, Any]:
    """Return an array as plain data, exact to the bit: dtype, shape, and compressed bytes in base 64."""
    data = zlib.compress(np.ascontiguousarray(array).tobytes(), level=6)
    return {"dtype": array.dtype.str, "shape": list(array.shape), "zlib": base64.b64encode(data).decode()}


def unpack(packed: dict[str, Any]) -> NDArray[Any]:
    """Return the array that `pack` was given."""
    data = zlib.decompress(base64.b64decode(packed["zlib"]))
    return np.frombuffer(data, np.dtype(packed["dtype"])).reshape(packed["shape"])


def digits(numbers: NDArray[Any]) -> str:
    """Return numbers below 36 as a digit each, `a` for 10: a game's actions as one readable line."""
    return "".join(_DIGITS[number] for number in numbers.tolist())


def undigits(text: str) -> NDArray[np.uint8]:
    """Return the numbers that `digits` was given."""
    return np.array([_DIGITS.index(digit) for digit in text], np.uint8)
