"""How the C library hands memory back to the system."""

from __future__ import annotations

import ctypes
import sys

_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
"""Parameters of glibc's mallopt(3)."""
_KEPT_BYTES = 2**30
_MOST_UNMAPPED_BYTES = (2**30, 4 * 1024**2 * ctypes.sizeof(ctypes.c_long))
"""Tensors up to this size come from what was kept. Older versions of glibc refuse more than the second."""


def keep_freed_memory() -> None:
    """Have glibc keep up to a gigabyte of what is freed, instead of asking the system for it again.

    An update allocates and frees tens of megabytes. Left to itself, glibc returns them to the system each
    time, and each new page is mapped and zeroed again in the middle of the next update. Process-wide; nothing
    where there is no glibc.
    """
    if sys.platform != "linux":
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    # the second setting alone would end glibc's own adjustment of the first
    if mallopt is not None and any(mallopt(_M_MMAP_THRESHOLD, most) for most in _MOST_UNMAPPED_BYTES):
        mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)
