"""Train, resume and evaluate DQN-family agents on Atari.

As a library, `import atari_dqn as dqn`: the names in `__all__` are its public functions and classes
(docs/api.md). They are imported from `atari_dqn.api` when they are used first, so that this import is quick.

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
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from atari_dqn.api.agent import Agent, load
    from atari_dqn.api.comparing import compare
    from atari_dqn.api.environment import make_env
    from atari_dqn.api.run import Run
    from atari_dqn.api.scoring import evaluate
    from atari_dqn.api.training import train

__version__ = "0.2.0"
__all__ = ["Agent", "Run", "compare", "evaluate", "load", "make_env", "train"]

_HOMES = {
    "Agent": "agent",
    "Run": "run",
    "compare": "comparing",
    "evaluate": "scoring",
    "load": "agent",
    "make_env": "environment",
    "train": "training",
}
"""The module of `atari_dqn.api` that holds each public name."""
_ROOMS = ("compare", "train")
"""Public functions that share their name with a package, which Python sets as the attribute."""

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


def __getattr__(name: str) -> Any:
    """Import a public name when it is used first."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}") if name in _ROOMS else _public(name)


def __dir__() -> list[str]:
    """List the public names too, imported or not."""
    return sorted({*globals(), *__all__})


def make_callable(package: str) -> None:
    """Make the call of a package of `_ROOMS` the call of the public function of its name."""
    sys.modules[package].__class__ = _CallablePackage


class _CallablePackage(ModuleType):
    """A package that is also a public function: `atari_dqn.train(…)` and `atari_dqn.train.loop`."""

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Call the function."""
        return _public(self.__name__.rpartition(".")[2])(*arguments, **options)


def _public(name: str) -> Any:
    return getattr(import_module(f"{__name__}.api.{_HOMES[name]}"), name)


limit_waiting()
