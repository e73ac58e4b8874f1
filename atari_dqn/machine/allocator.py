"""Configure when the C library returns freed memory to the system."""

from __future__ import annotations

import ctypes
import sys

_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
"""Parameters of glibc's mallopt(3)."""
_KEPT_BYTES = 2**30
_MOST_UNMAPPED_BYTES = (2**30, 4 * 1024**2 * ctypes.sizeof(ctypes.c_long))
"""Allocations up to this size reuse freed memory: the preferred value, and the largest that old glibc
takes."""


def keep_freed_memory() -> None:
    """Let glibc keep up to a gigabyte of freed memory instead of returning it to the system.

    An update allocates and frees tens of megabytes. By default glibc returns them to the system each time,
    and the next update has to map and zero the pages again. The setting applies to the whole process; without
    glibc this does nothing.
    """
    if sys.platform != "linux":
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    # setting one of the thresholds disables glibc's dynamic adjustment of both
    if mallopt is not None and any(mallopt(_M_MMAP_THRESHOLD, most) for most in _MOST_UNMAPPED_BYTES):
        mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)
