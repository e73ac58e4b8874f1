"""The predicted memory of an update, compared with the tensors that are allocated while it runs."""

import weakref
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from without_kernels import leave_to_torch

from atari_dqn.assembly.acceleration import Backend
from atari_dqn.assembly.data_efficient_parts import make_redo
from atari_dqn.assembly.parts import build_learner, initial_network
from atari_dqn.fast.acceleration import Acceleration
from atari_dqn.machine.hardware import Gpu, Hardware
from atari_dqn.machine.plan import make_plan
from atari_dqn.minibatch import Minibatch
from atari_dqn.spec.loader import load_spec
from atari_dqn.spec.schema import Spec
from atari_dqn.types import GameInfo

INFO = GameInfo(game="pong", action_names=tuple("abcdef"), frame_shape=(84, 84), rom_md5="")


class Alive(TorchDispatchMode):
    """Sums the sizes of the live tensors and records the maximum."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes: dict[int, int] = {}
        self.most = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = function(*args, **(kwargs or {}))
        for leaf in tree_leaves(out):
            if isinstance(leaf, torch.Tensor):
                self._note(leaf.untyped_storage())
        return out

    def _note(self, storage: torch.UntypedStorage) -> None:
        if storage._cdata not in self.bytes:
            self.bytes[storage._cdata] = storage.nbytes()
            weakref.finalize(storage, self.bytes.pop, storage._cdata, None)
            self.most = max(self.most, sum(self.bytes.values()))


def minibatch(size: int) -> Minibatch:
    stacks, numbers = torch.zeros((size, 4, 84, 84), dtype=torch.uint8), torch.zeros(size)
    return Minibatch(
        s_tm1=stacks, a_tm1=numbers.long(), r_t=numbers, discount_t=numbers, s_t=stacks.clone(),
        weight=numbers + 1, index=numbers.long(),
    )  # fmt: skip


def most_bytes(spec: Spec, backend: Backend | None = None) -> int:
    learner, size = build_learner(spec, INFO, torch.device("cpu"), backend), spec.learner.batch_size
    learner.update(minibatch(size))
    with Alive() as alive:
        learner.update(minibatch(size))
    return alive.most


FIXED = ("learner.threads=1", "system.workers=0")
CASES = [
    ((64, 128), ()),
    ((64, 128), ("network.kind=data_efficient", "toggles.dueling=true")),
    ((8, 24), ("network.kind=impala",)),
    ((8, 24), ("network.kind=impala", "network.width=2")),
    ((8, 24), ("network.kind=impala", "network.layer_norm=true", "network.pool_size=6")),
    ((64, 128), ("network.kind=nature_layer_norm",)),
    ((8, 24), ("toggles.distribution=iqn",)),
    ((8, 24), ("toggles.distribution=iqn", "toggles.munchausen=true")),
    ((64, 128), ("toggles.distribution=c51",)),
    ((64, 128), ("toggles.distribution=qr_dqn",)),
    ((256, 320), ("toggles.noisy=true",)),
    ((512, 576), ("toggles.random_shifts=true",)),
    ((256, 320), ("learner.accumulate=4",)),
    ((256, 320), ("learner.accumulate=4", "toggles.random_shifts=true")),
]
QUICK_CASES = (CASES[0], CASES[1])
"""The default tests have these; the slow tests have the others, which take up to 5 seconds each."""
EACH_CASE = pytest.mark.parametrize(
    ("sizes", "overrides"),
    [pytest.param(*case, marks=() if case in QUICK_CASES else pytest.mark.slow) for case in CASES],
)


def planned_and_found(
    tmp_path: Path, laptop: Hardware, sizes: tuple[int, int], overrides: tuple[str, ...]
) -> tuple[int, int]:
    """Return the difference in memory of two minibatches, in bytes."""
    (tmp_path / "pong.toml").write_text('track = "A"\ngame = "pong"\nseed = 1\n')
    planned, found = [], []
    for size in sizes:
        spec = load_spec(tmp_path / "pong.toml", [*FIXED, f"learner.batch_size={size}", *overrides]).spec
        plan = make_plan(spec, num_actions=6, device="cpu", hardware=laptop)
        planned.append(next(item.bytes for item in plan.items if item.name == "minibatch"))
        found.append(most_bytes(spec))
    return planned[1] - planned[0], found[1] - found[0]


@EACH_CASE
def test_predicted_memory_of_a_minibatch_is_that_of_its_tensors(
    tmp_path: Path,
    laptop: Hardware,
    sizes: tuple[int, int],
    overrides: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    leave_to_torch(monkeypatch)
    planned, found = planned_and_found(tmp_path, laptop, sizes, overrides)
    assert 1.0 <= planned / found < 1.3


@EACH_CASE
def test_kernels_allocate_no_more_than_the_plan_predicts(
    tmp_path: Path, laptop: Hardware, sizes: tuple[int, int], overrides: tuple[str, ...]
) -> None:
    planned, found = planned_and_found(tmp_path, laptop, sizes, overrides)
    assert planned >= found


@pytest.mark.parametrize("kind", ["nature", "dopamine", "data_efficient"])
def test_predicted_memory_of_a_search_for_dormant_units_is_that_of_its_tensors(
    tmp_path: Path, laptop: Hardware, kind: str
) -> None:
    (tmp_path / "pong.toml").write_text('track = "A"\ngame = "pong"\nseed = 1\n')
    redo = ("toggles.redo=true", "learner.redo_period_updates=1", f"network.kind={kind}")
    planned, found = [], []
    for states in (512, 576):  # of fewer states the copies of the network are the peak
        spec = load_spec(tmp_path / "pong.toml", [*FIXED, *redo, f"learner.redo_states={states}"]).spec
        plan = make_plan(spec, num_actions=6, device="cpu", hardware=laptop)
        planned.append(next(item.bytes for item in plan.items if item.key == "learner.redo_states"))
        found.append(most_bytes_of_a_search(spec, states))
    assert 1.0 <= (planned[1] - planned[0]) / (found[1] - found[0]) < 1.3


def most_bytes_of_a_search(spec: Spec, states: int) -> int:
    redo = make_redo(
        spec,
        build_learner(spec, INFO, torch.device("cpu")),
        states=lambda _: torch.zeros((2 * states, 4, 84, 84), dtype=torch.uint8)[:states],
        fresh=partial(initial_network, spec, INFO, "redo"),
        report=lambda _: None,
    )
    with Alive() as alive:
        redo.after(1)
    return alive.most


@pytest.mark.parametrize("kind", ["nature", "dopamine", "data_efficient"])
def test_plan_for_a_gpu_counts_the_unfolded_images(
    tmp_path: Path, laptop: Hardware, gpu: Gpu, kind: str
) -> None:
    (tmp_path / "pong.toml").write_text('track = "A"\ngame = "pong"\nseed = 1\n')
    planned, found = [], []
    for size in (64, 128):
        spec = load_spec(
            tmp_path / "pong.toml", [*FIXED, f"learner.batch_size={size}", f"network.kind={kind}"]
        ).spec
        plan = make_plan(spec, num_actions=6, device="cuda", hardware=replace(laptop, gpus=(gpu,)))
        planned.append(next(item.bytes for item in plan.items if item.name == "minibatch"))
        found.append(most_bytes(spec, Acceleration(torch.device("cuda"))))
    assert 1.0 <= (planned[1] - planned[0]) / (found[1] - found[0]) < 1.3
