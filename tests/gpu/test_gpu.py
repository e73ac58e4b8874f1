"""What only a GPU can show. `benchmarks/gpu.sh` runs this; elsewhere it is left out."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny import CPU, MEMORY, ticks_of, tiny_spec

from atari_dqn.actors.weights import FlatWeights
from atari_dqn.agent.actor import greedy_actions
from atari_dqn.assembly.replay_parts import build_replay
from atari_dqn.envs.games import make_envs
from atari_dqn.evaluation.evaluate import evaluate
from atari_dqn.evaluation.traces import Tracer
from atari_dqn.fast.cuda_graphs import CudaGraphs
from atari_dqn.fast.flat_buffer import find_buffer
from atari_dqn.replay.prioritized import PrioritizedSampler
from atari_dqn.replay.transfer import FromGpu
from atari_dqn.run.checkpoint.state_tree import tree_digest
from atari_dqn.run.checkpoint.store import CheckpointStore, load_checkpoint
from atari_dqn.schedule import LinearSchedule
from atari_dqn.train.build import assemble
from atari_dqn.train.training import Training

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an accelerator"),
]

CUDA = torch.device("cuda", 0)
EAGER = "system.cuda_graphs=false"
FAST = ("exploration.epsilon_decay_frames=200", "learner.target_period_updates=7")
TRACK_B = (
    *FAST, "toggles.double=true", "toggles.dueling=true", "toggles.prioritized=true", "optimizer.kind=adam",
)  # fmt: skip
RUNS = (
    FAST, TRACK_B, (*FAST, "env.num_envs=19"), (*FAST, "learner.precision=bf16"),
    (*FAST, "optimizer.kind=torch_rmsprop"), (*FAST, "learner.max_grad_norm=1.0"),
    (*TRACK_B, "toggles.n_step=3", "toggles.noisy=true", "toggles.distribution=c51"),
    (*FAST, "toggles.distribution=qr_dqn"), (*FAST, "toggles.distribution=iqn", "toggles.munchausen=true"),
    (*TRACK_B, "toggles.distribution=iqn"), (*TRACK_B, "toggles.random_shifts=true"),
    (*FAST, "toggles.random_shifts=true"), (*FAST, "network.kind=impala"), (*FAST, "learner.accumulate=4"),
    (*TRACK_B, "toggles.noisy=true", "toggles.random_shifts=true", "learner.accumulate=4"),
    (*FAST, "toggles.distribution=hl_gauss"),
    (*FAST, "learner.target_rate=0.1", "learner.target_period_updates=1"),
    (*TRACK_B, "toggles.distribution=iqn", "toggles.double=false", "toggles.munchausen=true",
     "toggles.noisy=true", "toggles.n_step=3", "network.kind=impala", "network.spectral_norm=true",
     "network.pool_size=2", "network.layer_norm=true", "env.num_envs=4", "learner.update_period_steps=8"),
    (*FAST, "toggles.self_prediction=true", "toggles.random_shifts=true", "learner.update_period_steps=1"),
    (*FAST, "toggles.resets=true", "learner.reset_period_updates=15", "learner.reset_last_updates=45"),
)  # fmt: skip
"""Updates that can be captured."""
NAMES = [" ".join(overrides[2:]) or "plain" for overrides in RUNS]
LOCKSTEP = (
    "env.num_envs=4", "actors.mode=lockstep", "actors.processes=2", "actors.fragment_steps=6",
    "actors.sync_period_steps=12", "actors.publish_period_updates=2", "training.total_frames=4_000",
)  # fmt: skip
EAGER_RUNS = {
    "memory": (*MEMORY, "toggles.prioritized=true", "toggles.n_step=3", "env.num_envs=3"),
    "annealing": (
        "toggles.self_prediction=true", "toggles.annealing=true", "learner.annealing_updates=5",
        "learner.n_step_start=4", "learner.update_period_steps=1", EAGER,
    ),
    "rollouts": (
        "replay.kind=rollouts", "network.kind=nature_layer_norm", "env.num_envs=4",
        "replay.capacity_steps=32", "replay.prefill_steps=32", "learner.batch_size=8",
        "learner.update_period_steps=4", "learner.target_period_updates=1", "learner.reduction=mean",
        "learner.loss=mse", "optimizer.kind=radam", "env.noop_max_frames=0",
    ),
    "recycled units": (*FAST, "toggles.redo=true", "learner.redo_states=32", EAGER),
    "actors in lockstep": LOCKSTEP,
}  # fmt: skip
"""Updates that are not captured."""


@contextmanager
def begun_there(*overrides: str, device: torch.device = CUDA) -> Iterator[Training]:
    with closing(assemble(tiny_spec(*overrides), device)) as training:
        training.begin()
        yield training


def course(*overrides: str, ticks: int = 160) -> tuple[str, np.ndarray]:
    """Return the digest after so many ticks, and what the latest updates measured."""
    with begun_there(*overrides) as training:
        ticks_of(training, ticks)
        training.metrics.wait()
        count = training.metrics.count
        assert count > 20
        return tree_digest(training.state_dict()), training.metrics.rows(max(0, count - 1_000), count)


@pytest.mark.parametrize("overrides", RUNS, ids=NAMES)
def test_run_from_graphs_equals_one_without_to_the_bit(overrides: tuple[str, ...]) -> None:
    played, eager = course(*overrides), course(*overrides, EAGER)
    np.testing.assert_array_equal(played[1], eager[1])
    assert played[0] == eager[0]


def test_weights_and_averages_of_rmsprop_are_in_flat_buffers() -> None:
    with begun_there(*FAST) as training:
        ticks_of(training, 100)
        weights, states = training.learner.online.parameters(), training.learner.optimizer.state.values()
        averages = ([state[name] for state in states] for name in ("mean", "mean_square"))
        assert all(find_buffer(tensors) is not None for tensors in ([*weights], *averages))


def test_published_weights_are_those_of_the_latest_update() -> None:
    with begun_there(*FAST) as training:
        ticks_of(training, 100)
        flat = FlatWeights(training.learner.online)
        before = flat.read()
        training.update(10)
        assert (flat.read() != before).any()


ALL_RUNS = [*RUNS, *EAGER_RUNS.values()]
ALL_NAMES = [*NAMES, *EAGER_RUNS]


@pytest.mark.parametrize("overrides", ALL_RUNS, ids=ALL_NAMES)
def test_run_repeats_to_the_bit(overrides: tuple[str, ...]) -> None:
    assert course(*overrides)[0] == course(*overrides)[0]


@pytest.mark.parametrize("overrides", [FAST, TRACK_B], ids=["A", "B"])
def test_a_thousand_updates_from_graphs_have_the_losses_of_those_without(overrides: tuple[str, ...]) -> None:
    """On a replay that does not change; the tolerance is 1e-4 of the loss at each update."""
    losses = []
    for captured in (True, False):
        with begun_there(*overrides) as training:
            ticks_of(training, 66)
            training.use_graphs(captured)
            for _ in range(100):
                training.update(10)
            training.metrics.wait()
            losses.append(training.metrics.rows(training.metrics.count - 1_000, training.metrics.count)[:, 0])
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("overrides", ALL_RUNS, ids=ALL_NAMES)
def test_training_from_a_checkpoint_goes_on_as_the_saved_one_would(
    tmp_path: Path, overrides: tuple[str, ...]
) -> None:
    store = CheckpointStore(tmp_path)
    with begun_there(*overrides) as saved:
        ticks_of(saved, 120)
        store.save(step=120, training=saved.state_dict(), bookkeeping={}, eval_score=None)
        ticks_of(saved, 40)
        expected = tree_digest(saved.state_dict())
    with closing(assemble(tiny_spec(*overrides), CUDA)) as loaded:
        loaded.load_state_dict(load_checkpoint(store.latest())[0])
        ticks_of(loaded, 40)
        assert tree_digest(loaded.state_dict()) == expected


@pytest.mark.parametrize("overrides", RUNS, ids=NAMES)
def test_capturing_changes_no_state(overrides: tuple[str, ...]) -> None:
    with begun_there(*overrides) as training:
        ticks_of(training, 100)
        training.use_graphs(True)
        training.replay.prepare(training.schedule_frames)
        before = tree_digest(training.state_dict())
        for work in (training._acting, training._updating):
            assert isinstance(work, CudaGraphs)
            work._capture()
        torch.cuda.synchronize()
        assert tree_digest(training.state_dict()) == before


def test_iteration_waits_for_the_gpu_in_one_place(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[int] = []
    wait = FromGpu.wait

    def noted(self: FromGpu) -> np.ndarray:
        waits.append(self._source.dim())
        return wait(self)

    quiet = (
        "logging.update_period_steps=1000000", "exploration.epsilon_end=0.0", "training.total_frames=10_000",
    )  # fmt: skip
    with begun_there(*TRACK_B, *quiet, "env.num_envs=8") as training:
        ticks_of(training, 60)
        monkeypatch.setattr(FromGpu, "wait", noted)
        torch.cuda.set_sync_debug_mode("error")
        try:
            ticks_of(training, 20)
        finally:
            torch.cuda.set_sync_debug_mode("default")
    assert waits == [2, 1] * 20  # for the updates before, then for the actions


def test_updates_take_no_more_memory_as_they_go_on() -> None:
    with begun_there(*TRACK_B) as training:
        ticks_of(training, 100)
        before = torch.cuda.memory_allocated()
        ticks_of(training, 40)
        assert torch.cuda.memory_allocated() == before


def test_gradient_that_is_not_finite_changes_nothing_from_a_graph_either() -> None:
    with begun_there(*FAST) as training:
        ticks_of(training, 100)
        training.replay.ring.reward.fill_(float("nan"))
        before = [weight.clone() for weight in training.learner.mutated_tensors()[:-1]]
        training.update(3)
        after = training.learner.mutated_tensors()[:-1]
        assert all(torch.equal(one, other) for one, other in zip(before, after, strict=True))
        training.metrics.wait()
        assert training.metrics.rows(training.metrics.count - 3, training.metrics.count)[:, -1].tolist() == [
            1.0, 2.0, 3.0,
        ]  # fmt: skip


def test_actions_from_a_graph_are_those_of_the_network() -> None:
    with begun_there(*FAST, "env.num_envs=16") as training:
        ticks_of(training, 30)
        assert training.actor.begin(0.0)
        played = training.actor.actions.cpu()
        stacks = training.replay.newest_stacks()
        assert torch.equal(training.actor.stacks, stacks)
        assert played.tolist() == greedy_actions(training.learner.online, stacks).tolist()


@pytest.mark.parametrize(
    "overrides",
    [
        FAST, (*FAST, "toggles.distribution=c51"), (*FAST, "learner.precision=bf16"),
        (*FAST, "toggles.distribution=iqn", "network.kind=impala", "network.spectral_norm=true"),
    ],
    ids=["plain", "C51", "bf16", "IQN with Impala"],
)  # fmt: skip
def test_evaluation_from_a_graph_equals_one_without_to_the_bit(overrides: tuple[str, ...]) -> None:
    with begun_there(*overrides) as training:
        ticks_of(training, 100)
        traces = [Tracer(), Tracer()]
        for tracer, more in zip(traces, ((), (EAGER,)), strict=True):
            evaluate(training.acting_network, tiny_spec(*overrides, *more), episodes=11, tracer=tracer)
    for game in range(11):
        one, other = (tracer.trace(game).values for tracer in traces)
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("overrides", [(), ("toggles.prioritized=true",)], ids=["uniform", "prioritized"])
def test_replay_on_the_gpu_equals_one_in_ram(overrides: tuple[str, ...]) -> None:
    spec = tiny_spec(*overrides, "toggles.n_step=3", "env.num_envs=5")
    envs = make_envs(game=spec.game, env=spec.env, num_envs=5, seed=1, stream="training")
    replays = [build_replay(spec, envs.info, device) for device in (CPU, CUDA)]
    step = envs.reset()
    for replay in replays:
        replay.begin(step)
    stream = np.random.default_rng(0)
    for iteration in range(150):
        actions = stream.integers(envs.info.num_actions, size=5)
        envs.send(actions)
        step = envs.recv()
        for replay in replays:
            replay.append(actions, step.discount(terminal_on_life_loss=True), step)
        if iteration % 10 == 9:
            same_draws(replays, torch.rand(4, spec.learner.batch_size, dtype=torch.float64))
    for replay in replays:
        replay.check()


def same_draws(replays, unit: torch.Tensor) -> None:
    """Compare minibatches of both, and give each the same errors."""
    found = []
    for replay in replays:
        replay.prepare(500)
        cells, weights = replay.sampler.indices_and_weights(unit.to(replay.sampler.device))
        found.append(replay.minibatch(cells.flatten(), weights.flatten()))
        replay.sampler.update_priorities(cells[0], (cells[0] % 7) * 0.3)
    for field in fields(found[0]):
        one, other = (getattr(batch, field.name).cpu() for batch in found)
        torch.testing.assert_close(one, other, msg=field.name)


def test_priorities_that_wait_in_large_numbers_reach_the_tree() -> None:
    schedule = LinearSchedule(start=0.4, end=1.0, decay_frames=1_000)
    sampler = PrioritizedSampler(
        capacity=100_000, batch_size=32, alpha=0.6, beta=schedule, priority_offset=0.01, seed=0, device=CUDA
    )
    for first in range(0, 100_000, 500):
        sampler.add(torch.arange(first, first + 500))
    sampler.prepare(0)
    sampler.tree.check()
    assert sampler.tree.total.item() == 100_000


@pytest.mark.parametrize("optimizer", ["deepmind_rmsprop", "adam", "torch_rmsprop"])
@pytest.mark.parametrize(("began", "goes_on"), [(CPU, CUDA), (CUDA, CPU)], ids=["to the gpu", "from the gpu"])
def test_run_goes_on_on_the_other_kind_of_device(tmp_path: Path, optimizer: str, began, goes_on) -> None:
    overrides, store = (*FAST, f"optimizer.kind={optimizer}"), CheckpointStore(tmp_path)
    with begun_there(*overrides, device=began) as saved:
        ticks_of(saved, 100)
        store.save(step=100, training=saved.state_dict(), bookkeeping={}, eval_score=None)
    with closing(assemble(tiny_spec(*overrides), goes_on)) as loaded:
        loaded.load_state_dict(load_checkpoint(store.latest())[0])
        there, here = (training.state_dict()["learner"] for training in (saved, loaded))
        assert tree_digest(there["online"]) == tree_digest(here["online"])
        assert tree_digest(there["target"]) == tree_digest(here["target"])
        assert tree_digest(there["optimizer"]["state"]) == tree_digest(here["optimizer"]["state"])
        before = [weight.detach().clone() for weight in loaded.learner.online.parameters()]
        ticks_of(loaded, 60)
        after = list(loaded.learner.online.parameters())
        assert not any(torch.equal(one, other) for one, other in zip(before, after, strict=True))
        assert all(bool(weight.isfinite().all()) for weight in after)
