"""Train, resume and evaluate DQN-family agents on Atari.

Every command, worker process and library user imports this before torch. So it is here that the threads of
OpenMP, with which torch computes on a CPU, are set to wait passively. By default a waiting thread keeps its
core busy for milliseconds. Where other programs run too, that can be the core that the thread it waits for
needs, and training slows down many times. Measured: docs/results/speed.md.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Container, Mapping, MutableMapping

__version__ = "0.1.0"

WAIT_VARIABLES = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME", "KMP_LIBRARY")
"""Environment variables that set how threads wait: of OpenMP, of GCC's libgomp, and two of LLVM's runtime."""


def wait_passively(
    environment: MutableMapping[str, str] = os.environ, loaded: Container[str] = sys.modules
) -> None:
    """Make waiting threads sleep, unless the user has set how they wait.

    Child processes inherit the setting. OpenMP's own variable is enough: libgomp and LLVM's runtime derive
    theirs from it. They read it when torch is imported; after that it has no effect and is not set.
    """
    if "torch" not in loaded and not any(name in environment for name in WAIT_VARIABLES):
        environment["OMP_WAIT_POLICY"] = "passive"


def wait_variables(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the variables of `WAIT_VARIABLES` that are set, with their values."""
    return {name: environment[name] for name in WAIT_VARIABLES if name in environment}


wait_passively()
