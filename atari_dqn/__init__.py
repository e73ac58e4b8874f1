"""Train, resume and evaluate DQN-family agents on Atari.

Every command, worker process and library user imports this package before torch. The package therefore sets
how the threads of OpenMP, with which torch computes on a CPU, wait for each other. By default a waiting
thread keeps its core busy for milliseconds. If other programs run too, the thread that it waits for may need
that core, and training becomes several times slower. Measured: docs/results/speed.md.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Container, Mapping, MutableMapping

__version__ = "0.2.0"

WAIT_VARIABLES = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME", "KMP_LIBRARY")
"""Environment variables that set how threads wait: one of OpenMP, one of GCC's libgomp, two of LLVM's."""


def wait_passively(
    environment: MutableMapping[str, str] = os.environ, loaded: Container[str] = sys.modules
) -> None:
    """Make waiting threads sleep, unless the user has set how they wait.

    Child processes inherit the setting. Setting OpenMP's own variable is enough: libgomp and LLVM's runtime
    derive theirs from it. They read it when torch is imported; later it has no effect, so it is not set.
    """
    if "torch" not in loaded and not any(name in environment for name in WAIT_VARIABLES):
        environment["OMP_WAIT_POLICY"] = "passive"


def wait_variables(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the variables of `WAIT_VARIABLES` that are set, with their values."""
    return {name: environment[name] for name in WAIT_VARIABLES if name in environment}


wait_passively()
