"""The functions that are captured in CUDA graphs, run on the CPU with every dispatched operation checked."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch
from tiny import begun, digest_after, ticks_of, tiny_spec
from torch.utils._python_dispatch import TorchDispatchMode
from without_kernels import leave_to_torch

from atari_dqn.assembly.acceleration import Eager, capture
from atari_dqn.evaluation.evaluate import evaluate
from atari_dqn.evaluation.outputs import _Forward
from atari_dqn.evaluation.traces import Tracer
from atari_dqn.fast.cuda_graphs import CudaGraphs, parts, powers_of_two, unchanged
from atari_dqn.replay.transfer import InRam
from atari_dqn.run.checkpoint.state_tree import tree_digest
from atari_dqn.train import build as assembly
from atari_dqn.train import metrics_ring
from atari_dqn.train import training as training_module
from atari_dqn.train.build import uses_graphs
from atari_dqn.train.loop import q_learning
from atari_dqn.train.training import Training

WAITS = (
    "aten::_local_scalar_dense", "aten::nonzero", "aten::masked_select", "aten::unique", "aten::equal",
    "aten::is_nonzero", "aten::lift_fresh",
)  # fmt: skip
"""Operators that synchronise host and device, or copy values of the host to the device."""


class WaitError(Exception):
    """An operation would make the host wait for the device."""


class Watched(TorchDispatchMode):
    """Records every operation with its shapes and plain numbers; raises for those that synchronise."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[object] = []

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = str(function.name())
        masks = name == "aten::index.Tensor" and any(
            place is not None and place.dtype == torch.bool for place in args[1]
        )
        if masks or name.split(".")[0] in WAITS:
            raise WaitError(name)
        if not name.startswith("profiler::"):
            self.asked.append((name, described(args), described(kwargs or {})))
        return function(*args, **(kwargs or {}))


def described(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return tuple(value.shape), value.dtype, value.stride()
    if isinstance(value, list | tuple):
        return tuple(described(entry) for entry in value)
    if isinstance(value, dict):
        return tuple((name, described(entry)) for name, entry in value.items())
    return repr(value) if not isinstance(value, torch.Generator) else "generator"


@contextmanager
def learning(monkeypatch: pytest.MonkeyPatch, *overrides: str) -> Iterator[Training]:
    """A training after some updates, with the layers and the optimizer steps of a GPU."""
    leave_to_torch(monkeypatch)
    spec = tiny_spec(*overrides)
    with begun(spec) as training:
        training.learner._is_on_cpu = False
        while training.clock.updates < 3:
            ticks_of(training, 1)
        yield training


TRACK_B = ("toggles.double=true", "toggles.dueling=true", "toggles.prioritized=true")
COMBINATIONS = (
    (), TRACK_B, ("toggles.n_step=3",), ("learner.max_grad_norm=1.0", "optimizer.kind=adam"),
    ("learner.precision=bf16",), ("learner.accumulate=4",),
    ("toggles.noisy=true", "toggles.distribution=c51", "toggles.prioritized=true"),
    ("toggles.distribution=qr_dqn",), ("toggles.distribution=iqn", "toggles.munchausen=true"),
    ("toggles.distribution=iqn", "toggles.double=true"),
    ("toggles.random_shifts=true",), ("network.kind=impala",), ("env.num_envs=3",),
    ("toggles.distribution=hl_gauss",),
    ("network.kind=impala", "network.spectral_norm=true", "network.pool_size=2", "network.layer_norm=true"),
    ("learner.target_period_updates=1", "toggles.double=true", "toggles.random_shifts=true"),
    (*TRACK_B, "toggles.noisy=true", "toggles.random_shifts=true", "learner.accumulate=4"),
)  # fmt: skip

SOME_COMBINATIONS = [
    combination if number in (1, 6) else pytest.param(combination, marks=pytest.mark.slow)
    for number, combination in enumerate(COMBINATIONS)
]
"""The default tests use the most different ones; the slow tests use the others."""


def ready(training: Training) -> None:
    training.replay.prepare(training.schedule_frames)


@pytest.mark.parametrize("overrides", SOME_COMBINATIONS, ids=" ".join)
def test_update_asks_the_host_for_nothing_and_is_the_same_work_each_time(
    overrides: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    with learning(monkeypatch, *overrides) as training:
        for _ in range(3):
            ready(training)
            with Watched() as watched:
                training.update_once()
            asked.append(watched.asked)
            training.learner.count_updates(1)
            training.metrics.count_updates(1)
            ticks_of(training, 7)  # rows are added and removed, and β rises
    assert len(asked[0]) > 50
    assert asked[0] == asked[1] == asked[2]


@pytest.mark.parametrize(
    "overrides", [(), ("toggles.noisy=true",), ("toggles.distribution=iqn",)], ids=" ".join
)
def test_acting_asks_the_host_for_nothing_and_is_the_same_work_each_time(
    overrides: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    with learning(monkeypatch, *overrides, "env.num_envs=3") as training:
        training.learner.copy_to_target = lambda: None
        for _ in range(2):
            with Watched() as watched:
                training.actor.compute_greedy()
            asked.append(watched.asked)
            ticks_of(training, 2)
    assert len(asked[0]) > 5
    assert asked[0] == asked[1]


@pytest.mark.parametrize(
    "overrides",
    [
        (), ("toggles.distribution=c51", "toggles.noisy=true"), ("toggles.distribution=qr_dqn",),
        ("toggles.distribution=iqn", "network.kind=impala", "network.spectral_norm=true"),
        ("learner.precision=bf16",),
    ],
    ids=" ".join,
)  # fmt: skip
def test_evaluating_asks_the_host_for_nothing_and_is_the_same_work_each_time(
    overrides: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    run = _Forward.run

    def watching(forward: _Forward) -> None:
        with Watched() as watched:
            run(forward)
        asked.append(watched.asked)

    with learning(monkeypatch, *overrides) as training:
        monkeypatch.setattr(_Forward, "run", watching)
        evaluate(training.acting_network, tiny_spec(*overrides), episodes=2, tracer=Tracer())
    assert len(asked) > 5
    assert all(len(each) > 5 and each == asked[0] for each in asked)


@pytest.mark.parametrize(
    ("device", "wanted", "kind"),
    [("cuda", True, CudaGraphs), ("cuda", False, Eager), ("cpu", True, Eager)],
)
def test_function_is_captured_on_a_gpu_if_wanted(device: str, wanted: bool, kind: type) -> None:
    assert type(capture(lambda: None, torch.device(device), wanted=wanted)) is kind


@pytest.mark.parametrize(
    "wait",
    [
        lambda t: t.sum().item(), lambda t: bool(t.any()), lambda t: t[t > 0], lambda t: t.nonzero(),
        lambda t: t + torch.tensor([1.0, 2.0]),
    ],
)  # fmt: skip
def test_what_a_gpu_would_wait_for_is_noticed(wait: Callable[[torch.Tensor], object]) -> None:
    values = torch.ones(2)
    with Watched(), pytest.raises(WaitError):
        wait(values)


def lasting(training: Training) -> list[torch.Tensor]:
    ring, sampler, learner = training.replay.ring, training.replay.sampler, training.learner
    tables = [ring.frame, ring.action, ring.reward, ring.discount, ring.start, ring.is_step]
    counts = [value for value in vars(sampler).values() if isinstance(value, torch.Tensor)]
    networks = [*learner.online.parameters(), *learner.target.parameters()]
    return [
        *tables, *counts, *networks, *sampler.mutated_tensors(), *learner.mutated_tensors(),
        *training.metrics.mutated_tensors(),
        training.actor.actions, training.actor.stacks,
    ]  # fmt: skip


@pytest.mark.parametrize("overrides", SOME_COMBINATIONS[:6], ids=" ".join)
def test_tensors_that_updates_read_and_write_stay_where_they_are(
    overrides: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    with learning(monkeypatch, *overrides, "learner.target_period_updates=2") as training:
        before = [tensor.data_ptr() for tensor in lasting(training)]
        ticks_of(training, 40)
        assert [tensor.data_ptr() for tensor in lasting(training)] == before


# PyTorch's RMSprop counts its steps on the device on a GPU alone
@pytest.mark.parametrize("overrides", [*SOME_COMBINATIONS, ("optimizer.kind=torch_rmsprop",)], ids=" ".join)
def test_warm_up_changes_no_state(overrides: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    with learning(monkeypatch, *overrides) as training:
        ready(training)
        work = training._graph_of_updates()
        before = tree_digest(training.state_dict()), training.metrics._measured.clone()
        with unchanged(work._mutated, work._generators):
            for _ in range(3):
                training.update_once()
            assert tree_digest(training.state_dict()) != before[0]
        assert tree_digest(training.state_dict()) == before[0]
        assert torch.equal(training.metrics._measured, before[1])


def test_averages_that_the_warm_up_made_begin_at_zero() -> None:
    with begun(tiny_spec("optimizer.kind=adam")) as training:
        ticks_of(training, 66)
        assert training.clock.updates == 0
        assert not training.learner.optimizer.state
        ready(training)
        work = training._graph_of_updates()
        with unchanged(work._mutated, work._generators):
            training.update_once()
        averages = [value for state in training.learner.optimizer.state.values() for value in state.values()]
        assert averages
        assert not any(bool(value.any()) for value in averages)


class Played:
    """Replaces a captured graph: runs the work eagerly."""

    def __init__(self, function: Callable[[], None], size: int) -> None:
        self.replay = lambda: [function() for _ in range(size)]


MORE = ((), ("env.num_envs=19",))


@pytest.fixture
def graphs_of_the_cpu(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Use graphs in trainings, simulated on the CPU; return the size of each captured graph."""
    sizes: list[int] = []

    def capture(self: CudaGraphs) -> None:
        with unchanged(self._mutated, self._generators):
            self._function()
        for size in self._sizes:
            sizes.append(size)
            self._graphs[size] = Played(self._function, size)

    monkeypatch.setattr(CudaGraphs, "_capture", capture)
    monkeypatch.setattr(assembly, "uses_graphs", lambda *_, **__: True)
    return sizes


@pytest.mark.parametrize(
    "overrides",
    [(*TRACK_B, "optimizer.kind=adam"), *(pytest.param(each, marks=pytest.mark.slow) for each in MORE)],
    ids=" ".join,
)
def test_run_from_graphs_equals_one_without(
    overrides: tuple[str, ...], graphs_of_the_cpu: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = tiny_spec("learner.target_period_updates=3", *overrides)
    iterations = 100 // spec.env.num_envs + 20
    played = digest_after(spec, iterations)
    monkeypatch.undo()
    assert played == digest_after(spec, iterations)
    assert sorted(graphs_of_the_cpu) == ([1, 1, 2, 4] if "env.num_envs=19" in overrides else [1, 1])


def test_loaded_state_has_the_graphs_captured_anew(graphs_of_the_cpu: list[int]) -> None:
    spec = tiny_spec("exploration.epsilon_decay_frames=40")
    with begun(spec) as saved, begun(spec) as training:
        ticks_of(saved, 100)
        ticks_of(training, 100)
        assert graphs_of_the_cpu == [1, 1, 1, 1]
        training.load_state_dict(saved.state_dict())
        ticks_of(training, 20)
        assert graphs_of_the_cpu == [1, 1, 1, 1, 1, 1]


def test_a_number_of_updates_is_played_in_few_graphs() -> None:
    sizes = tuple(powers_of_two(19))
    assert sizes == (16, 8, 4, 2, 1)
    assert [list(parts(times, sizes)) for times in (0, 1, 13, 40)] == [[], [1], [8, 4, 1], [16, 16, 8]]


@pytest.mark.parametrize(
    ("override", "device", "replay_on", "used"),
    [
        ("system.cuda_graphs=true", "cuda:0", "cuda:0", True),
        ("system.cuda_graphs=false", "cuda:0", "cuda:0", False),
        ("system.cuda_graphs=true", "cuda:0", "cpu", False),
        ("system.cuda_graphs=true", "cpu", "cpu", False),
    ],
)
def test_graphs_are_used_on_a_gpu_that_has_the_replay_and_if_wanted(
    override: str, device: str, replay_on: str, used: bool
) -> None:
    found = uses_graphs(tiny_spec(override), torch.device(device), replay_on=torch.device(replay_on))
    assert found is used


class Late(InRam):
    """A tensor whose values are on the host only after `wait`, like those of a GPU."""

    is_on_host = False

    def __init__(self, source: torch.Tensor) -> None:
        super().__init__(source)
        self._source, self._copy = source, np.zeros(source.shape, dtype=self._values.dtype)
        self._sent = self._copy

    def fetch(self) -> None:
        self._sent = self._source.numpy().copy()

    def wait(self) -> np.ndarray:
        return self._sent


def logs(*overrides: str) -> list[str]:
    """Train a complete run; return every row as text, in which NaN equals NaN."""
    spec = tiny_spec("training.total_frames=480", *overrides)
    with begun(spec) as training:
        return [
            repr(row)
            for iteration in q_learning(training)
            for row in training.reporter.rows(iteration, replay_transitions=0)
        ]


@pytest.mark.parametrize("overrides", [("env.num_envs=8",), ("exploration.epsilon_end=1.0",)], ids=" ".join)
def test_numbers_that_arrive_late_are_in_the_rows_of_their_period(
    overrides: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once = logs(*overrides)
    monkeypatch.setattr(metrics_ring, "host_copy", Late)
    monkeypatch.setattr(training_module, "host_copy", Late)
    assert logs(*overrides) == at_once


def test_numbers_that_arrive_late_change_neither_states_nor_when_they_are_saved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spec = tiny_spec("exploration.epsilon_end=1.0")  # no action waits for a value
    at_once = digest_after(spec, 95)
    monkeypatch.setattr(metrics_ring, "host_copy", Late)
    monkeypatch.setattr(training_module, "host_copy", Late)
    assert digest_after(spec, 95) == at_once


def test_host_waits_for_updates_before_it_waits_for_actions(monkeypatch: pytest.MonkeyPatch) -> None:
    # otherwise the log counts the time of updates as acting
    waited: list[int] = []

    class Noted(Late):
        def wait(self) -> np.ndarray:
            waited.append(self._source.dim())
            return super().wait()

    monkeypatch.setattr(metrics_ring, "host_copy", Noted)
    monkeypatch.setattr(training_module, "host_copy", Noted)
    with begun(tiny_spec()) as training:
        ticks_of(training, 70)
        waited.clear()
        training.act(0.0)
    assert waited == [2, 1]  # the table of metrics, the row of actions


def test_eager_work_is_done_as_often_as_it_is_asked_for() -> None:
    done: list[int] = []
    work = Eager(lambda: done.append(len(done)))
    work.run(3)
    work.run()
    assert done == [0, 1, 2, 3]
