"""Record the convolutions and matrix products of one update, and time each of them alone.

Their total time is a lower bound on the time of an update that computes layer by layer.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

_ARITHMETIC = {
    "aten::convolution", "aten::convolution_backward",
    "aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm",
    "atari_dqn::encode", "atari_dqn::encode_backward",
    "atari_dqn::multiply_noisy", "atari_dqn::multiply_noisy_backward",
}  # fmt: skip
_REPEATS = 30


@dataclass(frozen=True, kw_only=True)
class Kernels:
    """The convolutions and matrix products of an update."""

    calls: int
    seconds: float
    """The sum of their times: for each the median of 30 calls alone, with the arguments of the update."""
    flop: float
    """Floating-point operations, also of patches that repeat others."""
    are_ours: bool
    """Whether any of them is a kernel of this project."""
    compute_repeats_once: bool
    """Whether patches that repeat others are computed once: by our kernels in fp32, of frames of bytes."""

    @property
    def flop_per_second(self) -> float:
        """The rate of these kernels on these shapes."""
        return self.flop / self.seconds


class _Recorder(TorchDispatchMode):
    """Records every call of an arithmetic operator with its arguments."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.calls: list[tuple[Any, tuple[Any, ...], dict[str, Any]]] = []

    def __torch_dispatch__(
        self, operator: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        del types
        if operator.name().partition(".")[0] in _ARITHMETIC:
            self.calls.append((operator, args, kwargs or {}))
        return operator(*args, **(kwargs or {}))


def kernels_of(update: Callable[[], object], device: torch.device) -> Kernels:
    """Run an update without compilation, then time its convolutions and products one by one."""
    with torch.compiler.set_stance("force_eager"), _Recorder() as recorder:
        update()
    with torch.no_grad():
        seconds = sum(_median_seconds(call, device) for call in recorder.calls)
        flop = sum(_flop(*call) for call in recorder.calls)
    return Kernels(
        calls=len(recorder.calls),
        seconds=seconds,
        flop=flop,
        are_ours=any(operator.name().startswith("atari_dqn::") for operator, _, _ in recorder.calls),
        compute_repeats_once=any(
            _computes_repeats_once(operator, args) for operator, args, _ in recorder.calls
        ),
    )


def _computes_repeats_once(operator: Any, args: tuple[Any, ...]) -> bool:
    if not operator.name().startswith("atari_dqn::encode") or "backward" in operator.name():
        return False
    frames, weights = args[:2]
    return bool(frames.dtype == torch.uint8 and weights[0].dtype == torch.float32)


def _median_seconds(call: tuple[Any, tuple[Any, ...], dict[str, Any]], device: torch.device) -> float:
    operator, args, kwargs = call
    times = []
    for _ in range(_REPEATS):
        began = time.perf_counter()
        operator(*args, **kwargs)
        synchronize(device)
        times.append(time.perf_counter() - began)
    return sorted(times)[_REPEATS // 2]


def _flop(operator: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> float:
    name = operator.name().partition(".")[0]
    if name.startswith("atari_dqn::"):
        return _flop_of_ours(name.removeprefix("atari_dqn::"), args)
    result: Tensor = operator(*args, **kwargs)
    return float(flop_registry[operator.overloadpacket](*args, **kwargs, out_val=result))


def _flop_of_ours(name: str, args: tuple[Any, ...]) -> float:
    """Return the floating-point operations of one of our kernels; a gradient takes as many as the output."""
    if name == "encode":
        output, *hidden = torch.ops.atari_dqn.encode(*args[:-1], True)
        return sum(map(_flop_of_layer, [*hidden, output], args[1]))
    if name == "encode_backward":
        output, *hidden = args[3]
        of_weights = list(map(_flop_of_layer, [*hidden, output], args[2]))
        return sum(of_weights) + sum(of_weights[1:])  # no gradient with respect to the input bytes
    if name.endswith("backward"):
        upstream, _, weight = args[:3]
        return _flop_of_layer(upstream, weight) * (2 if args[-1] else 1)
    y: Tensor = getattr(torch.ops.atari_dqn, name)(*args)
    return _flop_of_layer(y, args[1])


def _flop_of_layer(y: Tensor, weight: Tensor) -> float:
    """Return the operations for an output y: one dot product with a filter for each of its elements."""
    return float(2 * y.numel() * weight[0].numel())


def synchronize(device: torch.device) -> None:
    """Synchronize with a CUDA device; return at once for a CPU."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
