"""Train, resume and evaluate DQN-family agents on Atari.

Every command, worker process and library user imports this package before torch. The package therefore sets
how the threads of OpenMP, with which torch computes on a CPU, wait for each other; the kernels have threads
of their own. By default a waiting thread keeps its core busy for milliseconds. If other programs run too, the
thread that it waits for may need that core, and training becomes several times slower. Measured:
docs/results/speed.md.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Container, Mapping, MutableMapping

__version__ = "0.2.0"

WAIT_VARIABLES = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME", "KMP_LIBRARY")
"""Environment variables that set how threads wait: one of OpenMP, one of GCC's libgomp, two of LLVM's."""


MOST_SPINS = 2000
"""How often a thread of libgomp looks before it sleeps: for about 50 µs, within which it is usually needed
again. To sleep at once makes an update slower, to look more often makes it slower next to other programs."""


def limit_waiting(
    environment: MutableMapping[str, str] = os.environ, loaded: Container[str] = sys.modules
) -> None:
    """Make waiting threads sleep soon, unless the user has set how they wait.

    LLVM's runtime derives its own setting, to sleep at once, from OpenMP's variable. Child processes inherit
    both. They are read when torch is imported; later they have no effect, so they are not set.
    """
    if "torch" not in loaded and not any(name in environment for name in WAIT_VARIABLES):
        environment.update({"OMP_WAIT_POLICY": "passive", "GOMP_SPINCOUNT": str(MOST_SPINS)})


def wait_variables(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the variables of `WAIT_VARIABLES` that are set, with their values."""
    return {name: environment[name] for name in WAIT_VARIABLES if name in environment}


limit_waiting()
