"""Invariant 3: every key of the schema changes something. A key that is added must be added here."""

import json
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import pytest
import torch
from full_disk import largest_file
from tiny import CPU, FEW_STEPS, MEMORY, SEQUENCES, begun, digest_after, run, ticks_of, tiny_spec

from atari_dqn.actors.inline import InlineActors
from atari_dqn.assembly.parts import build_network
from atari_dqn.assembly.replay_parts import build_replay
from atari_dqn.clock import Clock
from atari_dqn.envs.games import make_envs
from atari_dqn.errors import HaltedError, UserError
from atari_dqn.evaluation.evaluate import evaluate
from atari_dqn.machine.devices import set_kernels
from atari_dqn.run.checkpoint.state_tree import tree_digest
from atari_dqn.spec.keys import KEYS
from atari_dqn.telemetry.columns import TABLES
from atari_dqn.telemetry.gates.period_gates import PeriodRecord
from atari_dqn.train.build import assemble, build_gates

Overrides = tuple[str, ...]
PONG = ("game=pong", "env.kind=atari")
QUICK = ("exploration.epsilon_decay_frames=40",)
SHORT = ("training.total_frames=640",)


@cache
def learned(*overrides: str) -> str:
    """Return the state after 95 iterations, 31 of them after the prefill."""
    return digest_after(tiny_spec(*overrides), 95)


@cache
def learned_by_actors(*overrides: str) -> str:
    """Return the state at the end of the budget, of actors in this process if there are any."""
    with closing(assemble(tiny_spec(*overrides), CPU, InlineActors)) as training:
        training.begin()
        for iteration in training.iterations():
            list(training.rows(iteration))
        return tree_digest(training.state_dict())


@cache
def budget(*overrides: str) -> int:
    with begun(tiny_spec(*overrides)) as training:
        return len(ticks_of(training))


@cache
def first_frames(*overrides: str) -> tuple[object, ...]:
    spec = tiny_spec(*overrides)
    envs = make_envs(game=spec.game, env=spec.env, num_envs=1, seed=spec.seed, stream="training")
    return envs.info, envs.reset().frame.tobytes()


@cache
def scores(*overrides: str) -> object:
    spec = tiny_spec(*overrides)
    _, network = first_frames(*overrides), build_network(spec, envs_info(spec), CPU)
    return evaluate(network, spec, episodes=3)


def envs_info(spec):
    return make_envs(game=spec.game, env=spec.env, num_envs=1, seed=spec.seed, stream="training").info


@cache
def replay_place(*overrides: str) -> str:
    spec = tiny_spec(*overrides)
    try:
        return str(build_replay(spec, envs_info(spec), CPU).ring.device)
    except UserError as error:
        return str(error)


@cache
def kernels_on_a_gpu(*overrides: str) -> tuple[bool, bool]:
    """Return the settings by which cuDNN would select kernels."""
    with torch.backends.cudnn.flags():
        set_kernels(
            torch.device("cuda"), threads=1, deterministic=tiny_spec(*overrides).learner.deterministic
        )
        return torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark


@cache
def torchs_threads(*overrides: str) -> int:
    """Return the number of torch's threads in a training."""
    before = torch.get_num_threads()
    try:
        with begun(tiny_spec(*overrides)):
            return torch.get_num_threads()
    finally:
        torch.set_num_threads(before)


@cache
def what_is_compiled(*overrides: str) -> list[str]:
    """Return the functions that PyTorch compiles."""
    reported: list[str] = []

    def note(work: Callable[..., object], **_: object) -> Callable[..., object]:
        reported.append(work.__self__._function.__name__)
        return work

    with patch.object(torch, "compile", note), begun(tiny_spec(*overrides)):
        return reported


@cache
def files(*overrides: str) -> dict[str, object]:
    """Return the files of a complete run without times."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "run"
        run(path, *overrides)
        tables = {name: (path / f"{name}.csv").read_text() for name in TABLES if name != "throughput_log"}
        found = [*(path / "checkpoints").iterdir(), *(path / "checkpoints/latest").iterdir()]
        checkpoints = sorted(entry.name for entry in found)
        return tables | {"checkpoints": checkpoints}


@cache
def times_saved(*overrides: str) -> int:
    """Return the number of checkpoints that a run reports."""
    with TemporaryDirectory() as folder:
        run(Path(folder) / "run", *overrides)
        return (Path(folder) / "run/events.jsonl").read_text().count('"kind": "checkpoint"')


@cache
def alerts(*overrides: str) -> set[tuple[str, str]]:
    """Return the states of each gate, and the step of a halt."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "run"
        with suppress(HaltedError):
            run(path, *overrides)
        lines = [json.loads(line) for line in (path / "events.jsonl").read_text().splitlines()]
    reported = {(line["data"]["gate"], line["data"]["state"]) for line in lines if line["kind"] == "gate"}
    return reported | {("halted", line["step"]) for line in lines if line["kind"] == "halted"}


@cache
def on_a_full_disk(*overrides: str) -> list[str]:
    """Return the notices if no file may exceed 100 kB, as networks do and logs do not."""
    with TemporaryDirectory() as folder, largest_file(100_000):
        path = Path(folder) / "run"
        with pytest.raises(UserError, match="file too large"):
            run(path, *overrides)
        return [json.loads(line)["kind"] for line in (path / "events.jsonl").read_text().splitlines()]


def slowed(*overrides: str) -> list[tuple[str, str]]:
    """Return the state changes for a simulated run that slows down to 0.4 of its speed."""
    gates = build_gates(tiny_spec(*overrides), Clock(frame_skip=4, prefill_steps=0))
    reported = []
    for rate in [100.0] * 10 + [40.0] * 5:
        reported += gates.check_period(
            PeriodRecord(
                greedy_counts=(0,), dead_unit_share=None, updates_per_second=rate, free_disk_bytes=2**62
            )
        )
    return [(change.state, change.message) for change in reported]


@dataclass(frozen=True)
class Change:
    """The changed key, the keys set in both runs, and the place where the difference must show."""

    to: Overrides
    shared: Overrides = ()
    shows_in: Callable[..., object] = learned


def to(value: str, *shared: str, shows_in: Callable[..., object] = learned) -> Change:
    return Change((value,), shared, shows_in)


BLOWN_UP = ("optimizer.learning_rate=10", "learner.loss=mse", *SHORT)
"""No gradient is finite after the first few updates."""
ONE_BAD_GRADIENT = (*BLOWN_UP, "gates.max_consecutive_nonfinite_gradients=1")
MANY_PERIODS = (*SHORT, "logging.update_period_steps=4", "evaluation.full_period_frames=9999")
EVALUATED = (
    *SHORT, "evaluation.full_period_frames=80", "evaluation.light_period_frames=9999",
    "evaluation.light_episodes=1", "evaluation.full_episodes=1", "evaluation.epsilon=0.0",
    "optimizer.learning_rate=0.1",
)  # fmt: skip
"""Scores go up and down again."""
THREE_SCORES = ("evaluation.full_period_frames=400", "evaluation.light_period_frames=9999")
PRIORITIZED = ("toggles.prioritized=true",)
SPECTRUM = ("exploration.kind=spectrum", "env.num_envs=2")
NOISY = ("toggles.noisy=true",)
NOISY_AND_EPSILON = (
    *NOISY, "track=D", "replay.kind=transitions", "network.memory=none", "exploration.kind=linear",
    "exploration.epsilon_start=1.0", "exploration.epsilon_end=0.5", "env.num_envs=1",
    "learner.update_period_steps=100",
)  # fmt: skip
C51 = ("toggles.distribution=c51",)
IQN = (
    "toggles.distribution=iqn", "distribution.num_fractions=4", "distribution.num_target_fractions=4",
    "distribution.num_policy_fractions=4",
)  # fmt: skip
ROLLOUTS = (
    "replay.kind=rollouts", "env.num_envs=2", "replay.capacity_steps=32", "replay.prefill_steps=32",
    "learner.batch_size=8", "learner.update_period_steps=4", "learner.target_period_updates=1",
)  # fmt: skip
IMPALA = ("network.kind=impala",)
MUNCHAUSEN = ("toggles.munchausen=true",)
FAST = ("optimizer.learning_rate=0.05",)
RECURRENT = ("toggles.prioritized=true", "replay.alpha=1.0", *MEMORY, *FAST)
GREEDY = ("exploration.epsilon_start=0.1", "optimizer.learning_rate=0.01")
ACTORS = ("env.num_envs=2", "actors.mode=lockstep", "actors.fragment_steps=6", "actors.sync_period_steps=12")
FREE = ("env.num_envs=2", "actors.mode=free_running", "actors.error_buffer_steps=120")
TORCH_RMSPROP = ("optimizer.kind=torch_rmsprop",)
PREDICTIVE = ("toggles.self_prediction=true",)
RESETS = ("toggles.resets=true", "learner.reset_period_updates=3", "learner.reset_last_updates=6")
ANNEALING = ("toggles.annealing=true",)
REDO = (
    "toggles.redo=true",
    "learner.redo_period_updates=5",
    "learner.redo_threshold=0.3",
    "learner.redo_states=8",
)
AVERAGED = ("learner.target_period_updates=1", "learner.target_rate=0.1", "optimizer.learning_rate=0.01")

CHANGES = {
    "track": to("track=B"),
    "game": Change(PONG, (), first_frames),
    "seed": to("seed=2"),
    "toggles.double": to("toggles.double=true", "optimizer.learning_rate=0.01"),
    "toggles.dueling": to("toggles.dueling=true"),
    "toggles.prioritized": to("toggles.prioritized=true"),
    "toggles.n_step": to("toggles.n_step=3"),
    "toggles.noisy": to("toggles.noisy=true"),
    "toggles.distribution": to("toggles.distribution=c51"),
    "toggles.random_shifts": to("toggles.random_shifts=true"),
    "toggles.munchausen": to("toggles.munchausen=true"),
    "toggles.self_prediction": to("toggles.self_prediction=true"),
    "toggles.resets": Change(RESETS),
    "toggles.annealing": to("toggles.annealing=true"),
    "toggles.redo": Change(REDO),
    "env.kind": Change(PONG, (), first_frames),
    "env.num_envs": to("env.num_envs=2"),
    "env.frame_skip": to("env.frame_skip=3"),
    "env.screen_size_pixels": to("env.screen_size_pixels=40"),
    "env.resize": to("env.resize=bilinear", *PONG, shows_in=first_frames),
    "env.stack_frames": to("env.stack_frames=3"),
    "env.sticky_probability": to("env.sticky_probability=0.5"),
    "env.noop_max_frames": to("env.noop_max_frames=0"),
    "env.max_episode_frames": to("env.max_episode_frames=60"),
    "env.terminal_on_life_loss": to("env.terminal_on_life_loss=false"),
    "env.life_loss_ends_skip": to("env.life_loss_ends_skip=true"),
    "env.full_action_set": to("env.full_action_set=true", *PONG, shows_in=first_frames),
    "env.flicker_probability": to("env.flicker_probability=0.5"),
    "exploration.kind": to("exploration.kind=spectrum", "env.num_envs=2"),
    "exploration.spectrum_base": to("exploration.spectrum_base=0.5", *SPECTRUM),
    "exploration.spectrum_exponent": to("exploration.spectrum_exponent=3", *SPECTRUM),
    "exploration.epsilon_start": to("exploration.epsilon_start=0.1"),
    "exploration.epsilon_end": to("exploration.epsilon_end=0.9", *QUICK),
    "exploration.epsilon_decay_frames": to("exploration.epsilon_decay_frames=40"),
    "exploration.epsilon_off_frames": to("exploration.epsilon_off_frames=40", *NOISY_AND_EPSILON),
    "actors.mode": to("actors.mode=lockstep", "env.num_envs=2", shows_in=learned_by_actors),
    "actors.processes": to("actors.processes=1", *ACTORS, shows_in=learned_by_actors),
    "actors.fragment_steps": to("actors.fragment_steps=5", *ACTORS, shows_in=learned_by_actors),
    "actors.sync_period_steps": to("actors.sync_period_steps=6", *ACTORS, shows_in=learned_by_actors),
    "actors.publish_period_updates": to(
        "actors.publish_period_updates=2", *ACTORS, *GREEDY, shows_in=learned_by_actors
    ),
    "actors.max_lag_updates": to(
        "actors.max_lag_updates=10",
        *ACTORS,
        "actors.sync_period_steps=999",
        *GREEDY,
        shows_in=learned_by_actors,
    ),
    "actors.max_messages_in_flight": to("actors.max_messages_in_flight=3", *FREE, shows_in=learned_by_actors),
    "actors.error_buffer_steps": to("actors.error_buffer_steps=60", *FREE, shows_in=learned_by_actors),
    "replay.kind": Change(SEQUENCES),
    "replay.sequence_steps": to("replay.sequence_steps=9", *RECURRENT),
    "replay.burn_in_steps": to("replay.burn_in_steps=3", *RECURRENT),
    "replay.sequence_period_steps": to("replay.sequence_period_steps=5", *RECURRENT),
    "replay.stored_state": to("replay.stored_state=false", *RECURRENT),
    "replay.priority_mix": to("replay.priority_mix=0.0", *RECURRENT),
    "replay.capacity_steps": to("replay.capacity_steps=70"),
    "replay.prefill_steps": to("replay.prefill_steps=70"),
    "replay.device": to("replay.device=cuda", shows_in=replay_place),
    "replay.alpha": to("replay.alpha=0.1", *PRIORITIZED),
    "replay.beta_start": to("replay.beta_start=1.0", *PRIORITIZED),
    "replay.beta_end": to("replay.beta_end=0.4", *PRIORITIZED),
    "replay.priority_offset": to("replay.priority_offset=0.5", *PRIORITIZED),
    "replay.weight_maximum": to("replay.weight_maximum=minibatch", *PRIORITIZED),
    "replay.priority": to("replay.priority=cross_entropy", *PRIORITIZED, *C51),
    "network.kind": to("network.kind=data_efficient", "network.hidden_units=512"),
    "network.init": to("network.init=orthogonal"),
    "network.hidden_units": to("network.hidden_units=511"),
    "network.width": to("network.width=2", "network.kind=impala"),
    "network.spectral_norm": to("network.spectral_norm=true", *IMPALA),
    "network.pool_size": to("network.pool_size=2", *IMPALA),
    "network.layer_norm": to("network.layer_norm=true", *IMPALA),
    "network.memory": to("network.memory=gru", *RECURRENT),
    "network.memory_units": to("network.memory_units=17", *RECURRENT),
    "network.memory_inputs": to("network.memory_inputs=false", *RECURRENT),
    "network.shared_hidden": to("network.shared_hidden=true", "toggles.dueling=true"),
    "network.noisy_sigma": to("network.noisy_sigma=0.1", *NOISY),
    "distribution.num_atoms": to("distribution.num_atoms=50", *C51),
    "distribution.v_min": to("distribution.v_min=-9", *C51),
    "distribution.v_max": to("distribution.v_max=9", *C51),
    "distribution.sigma_bins": to("distribution.sigma_bins=0.5", "toggles.distribution=hl_gauss"),
    "distribution.num_quantiles": to("distribution.num_quantiles=50", "toggles.distribution=qr_dqn"),
    "distribution.num_fractions": to("distribution.num_fractions=7", *IQN),
    "distribution.num_target_fractions": to("distribution.num_target_fractions=7", *IQN),
    "distribution.num_policy_fractions": to("distribution.num_policy_fractions=7", *IQN),
    "learner.discount": to("learner.discount=0.5"),
    "learner.batch_size": to("learner.batch_size=4"),
    "learner.accumulate": to("learner.accumulate=4"),
    "learner.update_period_steps": to("learner.update_period_steps=3"),
    "learner.updates_per_period": to("learner.updates_per_period=2"),
    "learner.target_rate": to("learner.target_rate=0.5", *AVERAGED[::2]),
    "learner.acting_network": to("learner.acting_network=target", *AVERAGED, "exploration.epsilon_start=0.1"),
    "learner.target_period_updates": to("learner.target_period_updates=2"),
    "learner.max_abs_reward": to("learner.max_abs_reward=0.5"),
    "learner.loss": to("learner.loss=mse", "toggles.n_step=5", "learner.discount=1.0"),
    "learner.reduction": to("learner.reduction=mean"),
    "learner.sequence_reduction": to("learner.sequence_reduction=mean", *RECURRENT),
    "learner.value_rescaling": to("learner.value_rescaling=false", *RECURRENT),
    "learner.trace_decay": to("learner.trace_decay=0.1", *ROLLOUTS),
    "learner.max_grad_norm": to("learner.max_grad_norm=0.001"),
    "learner.precision": to("learner.precision=bf16"),
    "learner.threads": to("learner.threads=2", shows_in=torchs_threads),
    "learner.deterministic": to("learner.deterministic=false", shows_in=kernels_on_a_gpu),
    "learner.compile": to("learner.compile=true", shows_in=what_is_compiled),
    "learner.shift_pixels": to("learner.shift_pixels=1", "toggles.random_shifts=true"),
    "learner.intensity_scale": to("learner.intensity_scale=0.2", "toggles.random_shifts=true"),
    "learner.self_prediction_steps": to("learner.self_prediction_steps=3", *PREDICTIVE),
    "learner.self_prediction_weight": to("learner.self_prediction_weight=1.0", *PREDICTIVE),
    "learner.reset_period_updates": to("learner.reset_period_updates=2", *RESETS),
    "learner.reset_last_updates": to("learner.reset_last_updates=3", *RESETS),
    "learner.reset_keep": to("learner.reset_keep=0.5", *RESETS),
    "learner.reset_perturb": to("learner.reset_perturb=0.5", *RESETS),
    "learner.annealing_updates": to("learner.annealing_updates=5", *ANNEALING),
    "learner.n_step_start": to("learner.n_step_start=5", *ANNEALING),
    "learner.discount_start": to("learner.discount_start=0.5", *ANNEALING),
    "learner.redo_period_updates": to("learner.redo_period_updates=7", *REDO),
    "learner.redo_threshold": to("learner.redo_threshold=0.1", *REDO),
    "learner.redo_states": to("learner.redo_states=16", *REDO),
    "learner.munchausen_scale": to("learner.munchausen_scale=0.5", *MUNCHAUSEN),
    "learner.munchausen_temperature": to("learner.munchausen_temperature=0.1", *MUNCHAUSEN),
    "learner.munchausen_network": to("learner.munchausen_network=online", *MUNCHAUSEN),
    "learner.munchausen_lowest": to("learner.munchausen_lowest=-0.001", *MUNCHAUSEN),
    "optimizer.kind": to("optimizer.kind=adam"),
    "optimizer.learning_rate": to("optimizer.learning_rate=0.001"),
    "optimizer.epsilon": to("optimizer.epsilon=0.1"),
    "optimizer.gradient_decay": to("optimizer.gradient_decay=1.0"),
    "optimizer.squared_gradient_decay": to(
        "optimizer.squared_gradient_decay=0.5", "optimizer.gradient_decay=1.0"
    ),
    "optimizer.smoothing": to("optimizer.smoothing=0.5", *TORCH_RMSPROP),
    "optimizer.momentum": to("optimizer.momentum=0.5", *TORCH_RMSPROP),
    "optimizer.beta1": to("optimizer.beta1=0.5", "optimizer.kind=adam"),
    "optimizer.beta2": to("optimizer.beta2=0.5", "optimizer.kind=adam"),
    "optimizer.weight_decay": to("optimizer.weight_decay=0.5", "optimizer.kind=adam"),
    "training.total_frames": to("training.total_frames=60", *FEW_STEPS, shows_in=budget),
    "evaluation.epsilon": to("evaluation.epsilon=1.0", shows_in=scores),
    "evaluation.max_episode_frames": to("evaluation.max_episode_frames=60", shows_in=scores),
    "evaluation.light_period_frames": to("evaluation.light_period_frames=200", *SHORT, shows_in=files),
    "evaluation.light_episodes": to("evaluation.light_episodes=1", *SHORT, shows_in=files),
    "evaluation.full_period_frames": to("evaluation.full_period_frames=400", *SHORT, shows_in=files),
    "evaluation.full_episodes": to("evaluation.full_episodes=2", *SHORT, shows_in=files),
    "checkpoint.period_frames": to("checkpoint.period_frames=200", *SHORT, shows_in=times_saved),
    "checkpoint.period_seconds": to("checkpoint.period_seconds=1e-9", *FEW_STEPS, shows_in=times_saved),
    "checkpoint.keep_last": to("checkpoint.keep_last=3", *SHORT, shows_in=files),
    "checkpoint.keep_best": to("checkpoint.keep_best=2", *THREE_SCORES, shows_in=files),
    "checkpoint.replay": to("checkpoint.replay=false", *SHORT, shows_in=files),
    "checkpoint.on_full_disk": to("checkpoint.on_full_disk=continue", shows_in=on_a_full_disk),
    "logging.update_period_steps": to("logging.update_period_steps=40", *SHORT, shows_in=files),
    "logging.replay_period_steps": to("logging.replay_period_steps=40", *SHORT, shows_in=files),
    "logging.rolling_episodes": to("logging.rolling_episodes=1", *SHORT, shows_in=files),
    "gates.check_period_updates": to("gates.check_period_updates=7", *ONE_BAD_GRADIENT, shows_in=alerts),
    "gates.max_consecutive_nonfinite_gradients": Change(ONE_BAD_GRADIENT[-1:], BLOWN_UP, alerts),
    "gates.max_grad_norm": to("gates.max_grad_norm=0.001", *MANY_PERIODS, shows_in=alerts),
    "gates.max_q_over_bound": to("gates.max_q_over_bound=1e-6", *MANY_PERIODS, shows_in=alerts),
    "gates.max_evaluation_drop": to(
        "gates.max_evaluation_drop=1.0", *EVALUATED, "gates.evaluation_drop_evaluations=1", shows_in=alerts
    ),
    "gates.evaluation_drop_evaluations": to(
        "gates.evaluation_drop_evaluations=1", *EVALUATED, shows_in=alerts
    ),
    "gates.max_greedy_action_share": to(
        "gates.max_greedy_action_share=1.0", *MANY_PERIODS, "gates.greedy_action_periods=1", shows_in=alerts
    ),
    "gates.greedy_action_periods": to("gates.greedy_action_periods=1", *MANY_PERIODS, shows_in=alerts),
    "gates.max_dead_unit_share": to("gates.max_dead_unit_share=0.1", *MANY_PERIODS, shows_in=alerts),
    "gates.min_effective_share": to(
        "gates.min_effective_share=1.0", *PRIORITIZED, *MANY_PERIODS, shows_in=alerts
    ),
    "gates.min_throughput_share": to("gates.min_throughput_share=0.3", shows_in=slowed),
    "gates.throughput_drop_periods": to("gates.throughput_drop_periods=4", shows_in=slowed),
    "gates.min_free_disk_bytes": to(f"gates.min_free_disk_bytes={2**62}", *MANY_PERIODS, shows_in=alerts),
}


@pytest.mark.fault("W11")
def test_keys_with_a_choice_are_all_here() -> None:
    assert set(CHANGES) == {name for name, key in KEYS.items() if key.section != "system"}
    assert set(CHANGES) > AMONG_THE_DEFAULT_TESTS
    assert [name for name, key in KEYS.items() if len(key.choices) == 1] == []


AMONG_THE_DEFAULT_TESTS = {
    "track", "game", "seed", "toggles.distribution", "env.terminal_on_life_loss", "replay.device",
    "replay.beta_start", "replay.priority", "network.init", "distribution.v_min", "learner.discount",
    "learner.accumulate", "learner.deterministic", "learner.compile", "training.total_frames",
    "evaluation.epsilon", "checkpoint.period_seconds",
    "gates.max_consecutive_nonfinite_gradients", "gates.min_throughput_share",
}  # fmt: skip
"""Keys of every section and of every place where a difference shows; the slow tests have the others."""


@pytest.mark.fault("W11", "M06", "P12")
@pytest.mark.parametrize(
    "key",
    [key if key in AMONG_THE_DEFAULT_TESTS else pytest.param(key, marks=pytest.mark.slow) for key in CHANGES],
)
def test_no_key_is_dead(key: str) -> None:
    change = CHANGES[key]
    assert change.shows_in(*change.shared, *change.to) != change.shows_in(*change.shared)


@pytest.mark.slow
def test_observations_are_the_same_where_nothing_changes() -> None:
    for observe in (learned, budget, first_frames, scores, files):
        assert observe(*SHORT) == observe.__wrapped__(*SHORT)
