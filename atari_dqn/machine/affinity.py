"""The cores to which processes of this machine are bound."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

import psutil  # type: ignore[import-untyped]


def bound_processes(cores: Collection[int]) -> Counter[int]:
    """Count, for each of some cores, the processes that are bound to a part of them that has it.

    Threads of the kernel, many of which are bound, have no command and do not count. Nothing is counted on
    systems without affinity.
    """
    found: Counter[int] = Counter()
    if not hasattr(psutil.Process, "cpu_affinity"):
        return found
    for process in psutil.process_iter(["cmdline", "cpu_affinity"]):
        bound = set(process.info["cpu_affinity"] or ()) & set(cores)
        if process.info["cmdline"] and len(bound) < len(set(cores)):
            found.update(bound)
    return found
