import copy
from contextlib import closing
from functools import cache
from itertools import islice
from pathlib import Path

import pytest
import torch
from tiny import CPU, MEMORY, SEQUENCES, begun, digest_after, run, ticks_of, tiny_spec

from atari_dqn.run.checkpoint.state_tree import tree_digest
from atari_dqn.spec.loader import load_spec
from atari_dqn.spec.schema import Spec
from atari_dqn.telemetry.events import Event
from atari_dqn.train.build import assemble
from atari_dqn.train.loop import q_learning

ROOT = Path(__file__).parents[2]


@pytest.mark.fault("D04")
def test_same_spec_twice_gives_the_same_state() -> None:
    assert digest_after(tiny_spec(), 180) == digest_after(tiny_spec(), 180)


def test_another_seed_gives_another_state() -> None:
    assert digest_after(tiny_spec("seed=2"), 90) != digest_after(tiny_spec(), 90)


@pytest.mark.slow
def test_agent_with_memory_gives_the_same_state_twice_and_with_workers() -> None:
    spec = (*MEMORY, "env.num_envs=3", "training.total_frames=600")
    digests = {digest_after(tiny_spec(*spec, f"system.workers={workers}")) for workers in (0, 0, 2)}
    assert len(digests) == 1


@pytest.mark.parametrize("workers", [2, pytest.param(1, marks=pytest.mark.slow)])
def test_state_does_not_depend_on_the_number_of_workers(workers: int) -> None:
    envs = ("env.num_envs=3", "training.total_frames=600")
    inline, pooled = tiny_spec(*envs), tiny_spec(*envs, f"system.workers={workers}")
    assert digest_after(pooled) == digest_after(inline)


def short_pong(*overrides: str) -> Spec:
    """Track A's own spec with a budget of 20,000 frames, on two environments."""
    values = [
        "training.total_frames=20_000", "replay.prefill_steps=1_000", "replay.capacity_steps=3_000",
        "env.num_envs=2", "learner.batch_size=8", "learner.target_period_updates=100",
        "exploration.epsilon_decay_frames=8_000", "learner.update_period_steps=16",
        "learner.threads=1", "system.workers=0",
    ]  # fmt: skip
    return load_spec(ROOT / "runs/pong_trackA.toml", [*values, *overrides]).spec


@pytest.mark.fault("D04")
@pytest.mark.slow
@pytest.mark.parametrize("frames", [6_000, pytest.param(20_000, marks=pytest.mark.thorough)])
def test_pong_gives_the_same_state_twice_and_with_0_1_and_2_workers(frames: int) -> None:
    budget = f"training.total_frames={frames}"
    digests = [digest_after(short_pong(budget, f"system.workers={workers}")) for workers in (0, 0, 1, 2)]
    assert len(set(digests)) == 1


class Meddler:
    """A view that draws from every global stream."""

    def handle(self, event: Event) -> None:
        torch.rand(3)

    def close(self) -> None:
        pass


SHORT = "training.total_frames=440"
BTR = (
    "track=D", "replay.kind=transitions", "network.memory=none", "network.kind=impala",
    "network.hidden_units=16", "network.spectral_norm=true", "network.pool_size=2", "network.layer_norm=true",
    "toggles.distribution=iqn", "distribution.num_fractions=4", "distribution.num_target_fractions=4",
    "distribution.num_policy_fractions=4", "toggles.munchausen=true", "toggles.double=false",
    "toggles.noisy=true", "toggles.n_step=3", "env.num_envs=2", "learner.update_period_steps=8",
    "env.noop_max_frames=0", "exploration.kind=linear", "exploration.epsilon_end=0.01",
    "exploration.epsilon_start=1.0", "exploration.epsilon_off_frames=300",
)  # fmt: skip
FOR_MANY_CHECKPOINTS = "training.total_frames=280"


@cache
def undisturbed(frames: str) -> str:
    return digest_after(tiny_spec(frames))


CADENCES = (
    ("evaluation.full_period_frames=200", "checkpoint.keep_last=2"),
)  # fmt: skip
MORE_CADENCES = (
    ("evaluation.full_period_frames=100_000", "evaluation.light_period_frames=100_000"),
    ("checkpoint.period_frames=40",),
    ("evaluation.light_period_frames=100",),
    (FOR_MANY_CHECKPOINTS, "checkpoint.period_seconds=1e-9"),
    ("checkpoint.period_frames=0", "checkpoint.period_seconds=0"),
    ("evaluation.full_episodes=4", "system.evaluation_envs=2"),
    (
        "evaluation.full_period_frames=400",
        "evaluation.light_period_frames=9999",
        "system.evaluation_workers=1",
    ),
)


@pytest.mark.parametrize(
    "overrides", [*CADENCES, *(pytest.param(each, marks=pytest.mark.slow) for each in MORE_CADENCES)]
)
def test_cadence_of_evaluations_and_checkpoints_changes_nothing_that_is_learned(
    tmp_path: Path, overrides: tuple[str, ...]
) -> None:
    frames = FOR_MANY_CHECKPOINTS if FOR_MANY_CHECKPOINTS in overrides else SHORT
    assert run(tmp_path / "run", SHORT, *overrides)["state_digest"] == undisturbed(frames)


def test_views_change_nothing_that_is_learned(tmp_path: Path) -> None:
    digest = run(tmp_path / "run", SHORT, views=[Meddler()])["state_digest"]
    assert digest == undisturbed(SHORT)


def test_training_draws_from_no_global_stream() -> None:
    torch.manual_seed(1)
    first = digest_after(tiny_spec(), 100)
    torch.manual_seed(2)
    assert digest_after(tiny_spec(), 100) == first


LOADED = (
    ("toggles.prioritized=true", "toggles.dueling=true", "optimizer.kind=torch_rmsprop"),
    ("toggles.noisy=true", "toggles.distribution=c51", "toggles.prioritized=true", "env.num_envs=3"),
    BTR,
    (*MEMORY, "toggles.prioritized=true", "toggles.dueling=true", "toggles.n_step=5", "env.num_envs=3"),
)
MORE_LOADED = (
    (),
    ("env.num_envs=3",),
    ("optimizer.kind=adam", "toggles.double=true", "toggles.n_step=3", "learner.precision=bf16"),
    ("toggles.distribution=iqn", "toggles.munchausen=true", "toggles.random_shifts=true"),
    ("toggles.distribution=hl_gauss", "toggles.prioritized=true", "toggles.double=true"),
    ("exploration.kind=spectrum", "env.num_envs=3", "env.flicker_probability=0.5", "env.stack_frames=1"),
    ("learner.target_period_updates=1", "toggles.double=true", "toggles.random_shifts=true"),
    SEQUENCES,
    MEMORY,
    (*MEMORY, "network.memory=gru", "replay.stored_state=false", "network.hidden_units=0"),
)


@pytest.mark.fault("W03")
@pytest.mark.parametrize(
    ("overrides", "iterations"),
    [
        *((overrides, 90) for overrides in LOADED),
        *(pytest.param(overrides, 90, marks=pytest.mark.slow) for overrides in MORE_LOADED),
        *(pytest.param(overrides, 50, marks=pytest.mark.slow) for overrides in (LOADED[1], LOADED[3])),
    ],
)
def test_loaded_training_goes_on_as_the_saved_one_would(overrides: tuple[str, ...], iterations: int) -> None:
    # 50 iterations: inside one environment's prefill; 90: past it
    assert_goes_on(tiny_spec("training.total_frames=440", *overrides), iterations)


def test_loaded_training_goes_on_within_its_prefill() -> None:
    assert_goes_on(tiny_spec("training.total_frames=440"), 50)


@pytest.mark.slow
def test_loaded_training_of_pong_goes_on_as_the_saved_one_would() -> None:
    assert_goes_on(short_pong("env.sticky_probability=0.25", "training.total_frames=8_000"), 800)


def assert_goes_on(spec: Spec, iterations: int) -> None:
    with begun(spec) as training:
        ticks_of(training, iterations)
        saved = copy.deepcopy(training.state_dict())
        ticks_of(training)
        uninterrupted = tree_digest(training.state_dict())
    with closing(assemble(spec, CPU)) as resumed:
        resumed.load_state_dict(saved)
        ticks_of(resumed)
        assert tree_digest(resumed.state_dict()) == uninterrupted


def test_state_in_which_more_updates_are_due_than_an_iteration_makes_is_refused() -> None:
    spec = tiny_spec()
    with begun(spec) as training:
        ticks_of(training, 90)
        training.clock.updates -= 3
        with (
            closing(assemble(spec, CPU)) as resumed,
            pytest.raises(ValueError, match="updates would be owed"),
        ):
            resumed.load_state_dict(training.state_dict())


def discounts(*overrides: str) -> tuple[list[float], list[bool], list[bool]]:
    """Return the discount of each stored step, and whether the game or the episode ended with it."""
    with begun(tiny_spec("replay.capacity_steps=2_000", *overrides)) as training:
        rows = []
        for iteration in islice(q_learning(training), 150):
            step = iteration.step  # the next step overwrites its arrays
            if not step.first[0]:
                rows.append((bool(step.terminated[0]), bool(step.truncated[0])))
        ring = training.replay.ring
        stored = ring.discount[ring.is_step].tolist()
    over, capped = zip(*rows, strict=True)
    return stored, list(over), list(capped)


@pytest.mark.fault("D-ok.lives")
def test_truncated_episode_keeps_its_discount() -> None:
    stored, over, capped = discounts("env.max_episode_frames=60", "env.terminal_on_life_loss=false")
    assert sum(capped) > 3
    assert not any(over)
    assert set(stored) == {1.0}


def test_finished_game_has_discount_zero_and_nothing_else_has() -> None:
    stored, over, _ = discounts("env.max_episode_frames=2_000", "env.terminal_on_life_loss=false")
    assert sum(over) > 1
    assert [value == 0.0 for value in stored] == over


@pytest.mark.fault("D-ok.lives")
def test_life_loss_has_discount_zero_where_the_spec_says_so() -> None:
    lost, _, _ = discounts("env.max_episode_frames=60", "env.terminal_on_life_loss=true")
    assert 0 < lost.count(0.0) < len(lost)
