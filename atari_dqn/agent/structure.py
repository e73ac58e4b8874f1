"""What a module is made of, for those who compute several layers at once and call none of them."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from operator import is_

import torch
from torch import nn
from torch.nn.modules import module as of_all_modules


class Anatomy:
    """All modules below a module, their classes and their parameters: what is known of these may be kept.

    A layer may be replaced, or `nn.utils.parametrize` changes its class; `load_state_dict(assign=True)`
    replaces parameters.
    """

    def __init__(self, root: nn.Module) -> None:
        self._modules = [*root.modules()]
        tables = (table for each in self._modules for table in (each._modules, each._parameters))
        self._tables = [table for table in tables if table]
        self._known = self._now()

    def holds(self) -> bool:
        """Return whether it is all as it was."""
        now = self._now()
        return len(now) == len(self._known) and all(map(is_, now, self._known))

    def _now(self) -> list[object]:
        return [*map(type, self._modules), *chain.from_iterable(table.values() for table in self._tables)]


def keeps(module: nn.Module, base: type[nn.Module], *methods: str) -> bool:
    """Return whether a module's class, which may be made from `base`, has left it these methods."""
    return isinstance(module, base) and all(
        getattr(type(module), method) is getattr(base, method) for method in methods
    )


def watched(layers: Iterable[nn.Module]) -> bool:
    """Return whether any of these has a hook, or a `forward` of its own: who passes it by calls neither.

    False of what is compiled.
    """
    if torch.compiler.is_compiling():
        return False
    return _has_global_hook() or any(
        layer._forward_hooks
        or layer._forward_pre_hooks
        or layer._backward_hooks
        or layer._backward_pre_hooks
        or "forward" in layer.__dict__
        for layer in layers
    )


def _has_global_hook() -> bool:
    return bool(of_all_modules._has_any_global_hook())  # type: ignore[no-untyped-call]
