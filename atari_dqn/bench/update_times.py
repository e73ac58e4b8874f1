"""Measure the time of an update on this CPU by precision and number of threads."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product

import torch

from atari_dqn.assembly.parts import build_learner
from atari_dqn.machine.allocator import keep_freed_memory
from atari_dqn.machine.denormals import flush_denormals
from atari_dqn.minibatch import Minibatch
from atari_dqn.spec.keys import build
from atari_dqn.spec.schema import Spec
from atari_dqn.spec.tracks import load_track
from atari_dqn.types import GameInfo

_CPU = torch.device("cpu")
_NUM_ACTIONS = 6
"""The number of actions of Pong."""
_WARM_UP_UPDATES = 3
_ROUNDS = 5


@dataclass(frozen=True, kw_only=True)
class UpdateTime:
    """The time of an update with one precision and number of threads."""

    precision: str
    threads: int
    seconds: float
    """Minimum over rounds of the mean time; other programs can only increase it."""


def measure_update_times(*, precisions: tuple[str, ...], cores: int, seconds: float) -> list[UpdateTime]:
    """Time updates of the paper's agent for `seconds` in total, with 1 thread, half the cores and all cores.

    The combinations are interleaved, so that a varying load affects all of them. The number of torch's
    threads is restored afterwards.
    """
    keep_freed_memory()
    flush_denormals()
    combinations = list(product(precisions, sorted({1, max(1, cores // 2), cores})))
    updates = {precision: _updates_of(precision) for precision in precisions}
    best = dict.fromkeys(combinations, float("inf"))
    with _restored_threads():
        for (precision, threads), _ in product(combinations, range(_WARM_UP_UPDATES)):
            torch.set_num_threads(threads)
            updates[precision]()
        for _, (precision, threads) in product(range(_ROUNDS), combinations):
            torch.set_num_threads(threads)
            mean = _mean_seconds(updates[precision], seconds / _ROUNDS / len(combinations))
            best[precision, threads] = min(best[precision, threads], mean)
    return [
        UpdateTime(precision=precision, threads=threads, seconds=least)
        for (precision, threads), least in best.items()
    ]


@contextmanager
def _restored_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _updates_of(precision: str) -> Callable[[], object]:
    spec = build({**load_track("A"), "game": "pong", "seed": 1, "learner.precision": precision})
    size = spec.env.screen_size_pixels
    info = GameInfo(
        game="pong",
        action_names=tuple(map(str, range(_NUM_ACTIONS))),
        frame_shape=(size, size),
        rom_md5="",
    )
    learner, minibatch = build_learner(spec, info, _CPU), _minibatch(spec)
    return lambda: learner.update(minibatch)


def _minibatch(spec: Spec) -> Minibatch:
    rows, size = spec.learner.batch_size, spec.env.screen_size_pixels
    generator = torch.Generator().manual_seed(0)
    shape = (2, rows, spec.env.stack_frames, size, size)
    s_tm1, s_t = torch.randint(0, 256, shape, generator=generator, dtype=torch.uint8)
    return Minibatch(
        s_tm1=s_tm1,
        a_tm1=torch.arange(rows) % _NUM_ACTIONS,
        r_t=torch.zeros(rows),
        discount_t=torch.full((rows,), spec.learner.discount),
        s_t=s_t,
        weight=torch.ones(rows),
        index=torch.arange(rows),
    )


def _mean_seconds(update: Callable[[], object], seconds: float) -> float:
    updates, began = 0, time.perf_counter()
    while updates == 0 or time.perf_counter() - began < seconds:
        update()
        updates += 1
    return (time.perf_counter() - began) / updates
