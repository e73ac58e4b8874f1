"""How the threads of OpenMP, which compute torch's sums on a CPU, wait for each other.

By default a thread that waits keeps its core busy for milliseconds, in case the wait is short. On a machine
with other work it then takes the core from the thread that it waits for, and training slows down many times.
A thread that waits passively sleeps. Measurements: docs/results/README.md, "Passive waiting".
"""

from __future__ import annotations

import os
import sys
from collections.abc import Container, Mapping, MutableMapping

WAITING = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME", "KMP_LIBRARY")
"""Variables that say how threads wait: the standard's, one of GCC's libgomp, two of LLVM's runtime."""


def wait_passively(
    environment: MutableMapping[str, str] = os.environ, loaded: Container[str] = sys.modules
) -> None:
    """Have waiting threads sleep, unless the user has set how they wait.

    Processes that this one starts inherit it. The standard's variable is enough: libgomp and LLVM's runtime
    take their own from it. They read it when torch loads them; later it would have no effect, and is not set.
    """
    if "torch" not in loaded and not any(name in environment for name in WAITING):
        environment["OMP_WAIT_POLICY"] = "passive"


def waiting(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return which of these variables are set, and to what."""
    return {name: environment[name] for name in WAITING if name in environment}
