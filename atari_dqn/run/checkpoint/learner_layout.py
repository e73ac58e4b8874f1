"""Check that a loaded learner state has the names, shapes and types of a new learner.

Kernels access weights and averages by address, so that tensors of other shapes must not reach them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from inspect import signature
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.optim import Adam, Optimizer, RAdam, RMSprop

from atari_dqn.agent.spectral import VECTORS
from atari_dqn.errors import DamagedError
from atari_dqn.run.checkpoint.layout import is_like, shown
from atari_dqn.types import StateDict


def _options(kind: type[Optimizer]) -> frozenset[str]:
    """List the options of an optimizer, from its signature: to create one imports PyTorch's compiler."""
    return frozenset(signature(kind).parameters) - {"params"}


_AVERAGES: dict[frozenset[str], set[str]] = {
    _options(Adam): {"step", "exp_avg", "exp_avg_sq"},
    _options(RAdam): {"step", "exp_avg", "exp_avg_sq"},
    _options(RMSprop): {"square_avg", "grad_avg"},
}
"""The averages that PyTorch's optimizers have for each weight after a step, by the names of their options."""


def check_learner(path: Path, state: StateDict, learner: StateDict) -> None:
    """Raise `DamagedError` with the first key in which a state differs in layout from a new learner."""
    problem = next(_problems(state, learner), None)
    if problem is not None:
        raise DamagedError(f"{path}: {problem}")


def _problems(state: StateDict, learner: StateDict) -> Iterator[str]:
    for key, expected in learner.items():
        found = state.get(key)
        if not isinstance(expected, dict):
            if not _has_same_layout(found, expected):
                yield f"{key}: found {_describe(found)}, expected {_describe(expected)}"
        elif not isinstance(found, dict):
            yield f"{key}: found {_describe(found)}, expected a table"
        elif key == "optimizer":
            yield from _optimizer_problems(found, expected, _optimized(learner["online"]))
        else:
            yield from _weight_problems(key, found, expected)


def _optimized(network: StateDict) -> list[Tensor]:
    """List the weights that an optimizer changes; the vectors of spectral normalisation are none."""
    return [value for name, value in network.items() if name.rpartition(".")[2] not in VECTORS]


def _weight_problems(key: str, found: StateDict, expected: StateDict) -> Iterator[str]:
    for name in dict.fromkeys(chain(expected, found)):
        weight, new = found.get(name), expected.get(name)
        if not isinstance(new, Tensor) or not _has_same_layout(weight, new):
            yield (
                f"is of another game or network than its run's: {key}.{name} is {_describe(weight)}, "
                f"expected {_describe(new)}; move it back to the run that it belongs to"
            )


def _optimizer_problems(found: StateDict, expected: StateDict, weights: list[Tensor]) -> Iterator[str]:
    groups, averages = found.get("param_groups"), found.get("state")
    if not isinstance(groups, list) or len(groups) != len(expected["param_groups"]):
        yield f"optimizer.param_groups: expected {len(expected['param_groups'])} groups"
        return
    for number, (group, new) in enumerate(zip(groups, expected["param_groups"], strict=True)):
        for name, value in new.items():
            if not isinstance(group, dict) or not _equals_spec_option(group.get(name), value):
                yield f"optimizer.param_groups.{number}.{name}: differs from the spec of the run"
    if not isinstance(averages, dict) or (averages and averages.keys() != set(range(len(weights)))):
        yield f"optimizer.state: expected averages of each of {len(weights)} weights, or of none"
        return
    options = frozenset(expected["param_groups"][0]) - {"params"}
    needed = _AVERAGES.get(options) or set(expected["state"].get(0, ()))
    for number, of_weight in averages.items():
        yield from _average_problems(f"optimizer.state.{number}", of_weight, weights[number], needed)


def _average_problems(key: str, found: Any, weight: Tensor, needed: set[str]) -> Iterator[str]:
    if not isinstance(found, dict) or not needed <= found.keys():
        yield f"{key}: expected {', '.join(sorted(needed))}"
        return
    for name, value in found.items():
        if not isinstance(value, Tensor) or not (_is_count(value) or _has_same_layout(value, weight)):
            yield f"{key}.{name}: found {_describe(value)}, expected {_describe(weight)}"


def _is_count(value: Tensor) -> bool:
    return value.shape == () and math.isfinite(value.item()) and value.item() >= 0


def _equals_spec_option(found: Any, expected: Any) -> bool:
    """Return whether an optimizer option equals that of the spec; flags for the device may differ."""
    if expected is None or isinstance(expected, bool):
        return found is None or isinstance(found, bool)
    return type(found) is type(expected) and found == expected


def _has_same_layout(found: Any, expected: Any) -> bool:
    if not isinstance(expected, Tensor):
        return is_like(found, expected)
    if not isinstance(found, Tensor) or found.dtype != expected.dtype:
        return False
    # the state of a generator has another length on another type of device
    is_stream = expected.dtype == torch.uint8 and expected.dim() == 1
    return found.dim() == 1 if is_stream else found.shape == expected.shape


def _describe(value: Any) -> str:
    if value is None:
        return "missing"
    return f"{value.dtype} of shape {tuple(value.shape)}" if isinstance(value, Tensor) else shown(value)
