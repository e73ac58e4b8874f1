"""Every rule on a combination of keys refuses a spec, and names the keys."""

import re
from collections import Counter
from itertools import chain

import pytest

from atari_dqn.spec.contradictions import RULES, contradictions
from atari_dqn.spec.errors import SpecError
from atari_dqn.spec.keys import flatten
from atari_dqn.spec.loader import load_spec

ACTING_WITH_TARGET = "learner.acting_network=target"
REDO, NOISY, MUNCHAUSEN = "toggles.redo=true", "toggles.noisy=true", "toggles.munchausen=true"
ANNEALING, SELF_PREDICTION = "toggles.annealing=true", "toggles.self_prediction=true"
SPECTRUM = "exploration.kind=spectrum"
UNEXPLORED = "exploration.epsilon_start=0 exploration.epsilon_end=0"
SMALL = "replay.capacity_steps=32 replay.prefill_steps=32"
REFUSED = {
    "pong_trackA": {
        "replay.prefill_steps replay.capacity_steps": "replay.capacity_steps=49_999",
        "replay.prefill_steps learner.batch_size": "replay.prefill_steps=31",
        "learner.accumulate learner.batch_size": "learner.accumulate=5",
        "replay.prefill_steps env.frame_skip training.total_frames": "training.total_frames=200_000",
        "learner.update_period_steps replay.prefill_steps env.num_envs env.frame_skip training.total_frames "
        "replay.kind": "learner.update_period_steps=12_450_000",
        "replay.prefill_steps env.num_envs toggles.n_step replay.kind": (
            "replay.prefill_steps=32 toggles.n_step=31"
        ),
        "replay.capacity_steps env.num_envs env.stack_frames toggles.n_step replay.kind": (
            f"{SMALL} toggles.n_step=27"
        ),
        "exploration.epsilon_start exploration.epsilon_end": "exploration.epsilon_start=0.05",
        "toggles.noisy exploration.epsilon_off_frames": "exploration.epsilon_off_frames=1",
        "exploration.epsilon_off_frames exploration.epsilon_start exploration.epsilon_end": (
            f"{NOISY} {UNEXPLORED} exploration.epsilon_off_frames=1"
        ),
        "exploration.spectrum_base env.num_envs": SPECTRUM,
        "exploration.spectrum_base exploration.spectrum_exponent": (
            f"{SPECTRUM} env.num_envs=8 exploration.spectrum_exponent=1"
        ),
        "toggles.noisy exploration.kind": f"{NOISY} {SPECTRUM} env.num_envs=8",
        "toggles.noisy exploration.epsilon_start exploration.epsilon_end track": (
            f"{NOISY} exploration.epsilon_start=1"
        ),
        "toggles.noisy exploration.epsilon_start exploration.epsilon_end": UNEXPLORED,
        "replay.beta_start replay.beta_end": "toggles.prioritized=true replay.beta_end=0.3",
        "learner.shift_pixels learner.intensity_scale": (
            "toggles.random_shifts=true learner.shift_pixels=0 learner.intensity_scale=0"
        ),
        "learner.shift_pixels env.screen_size_pixels": "toggles.random_shifts=true learner.shift_pixels=84",
        "evaluation.light_episodes evaluation.full_episodes": "evaluation.light_episodes=31",
        "env.noop_max_frames env.max_episode_frames": "env.max_episode_frames=30",
        "env.noop_max_frames evaluation.max_episode_frames": "evaluation.max_episode_frames=30",
        "env.frame_skip env.max_episode_frames": "env.noop_max_frames=0 env.max_episode_frames=3",
        "env.frame_skip evaluation.max_episode_frames": (
            "env.noop_max_frames=0 evaluation.max_episode_frames=3"
        ),
        "optimizer.gradient_decay optimizer.squared_gradient_decay": "optimizer.gradient_decay=0.5",
        "distribution.v_min distribution.v_max": (
            "toggles.distribution=c51 distribution.v_min=10 distribution.v_max=10"
        ),
        "distribution.v_max distribution.v_min learner.max_abs_reward learner.discount": (
            "toggles.distribution=c51 distribution.v_max=101"
        ),
        "toggles.munchausen toggles.double": f"{MUNCHAUSEN} toggles.double=true",
        "toggles.munchausen toggles.distribution": f"{MUNCHAUSEN} toggles.distribution=c51",
        "toggles.distribution toggles.double": "toggles.distribution=qr_dqn toggles.double=true",
        "toggles.distribution toggles.dueling": "toggles.distribution=qr_dqn toggles.dueling=true",
        "toggles.distribution toggles.noisy": f"toggles.distribution=qr_dqn {NOISY}",
        "network.memory replay.kind": "network.memory=lstm replay.kind=transitions",
        "network.kind network.memory": "network.kind=nature_layer_norm network.memory=gru",
        "network.spectral_norm learner.target_rate": (
            "network.kind=impala network.spectral_norm=true learner.target_rate=0.5"
        ),
        "network.layer_norm network.memory": (
            "network.kind=impala network.layer_norm=true network.memory=lstm"
        ),
        "network.hidden_units network.memory toggles.dueling": "network.hidden_units=0",
        "network.hidden_units network.kind": "network.kind=nature_layer_norm network.hidden_units=1",
        "network.hidden_units network.layer_norm": (
            "network.kind=impala network.layer_norm=true network.hidden_units=1"
        ),
        "network.pool_size env.screen_size_pixels": "network.kind=impala network.pool_size=12",
        "learner.acting_network learner.target_period_updates learner.target_rate": (
            f"{ACTING_WITH_TARGET} learner.target_period_updates=1"
        ),
        "learner.reset_period_updates learner.reset_last_updates": (
            "toggles.resets=true learner.reset_last_updates=39_999"
        ),
        "learner.reset_period_updates learner.updates_per_period learner.update_period_steps "
        "replay.prefill_steps env.num_envs env.frame_skip training.total_frames": (
            "toggles.resets=true training.total_frames=840_016"  # (210,003 − 50,000) // 4 = 40,000 updates
        ),
        "learner.reset_keep learner.reset_perturb": (
            "toggles.resets=true learner.reset_keep=0 learner.reset_perturb=0"
        ),
        "learner.n_step_start toggles.n_step": f"{ANNEALING} toggles.n_step=11",
        "learner.discount_start learner.discount": f"{ANNEALING} learner.discount=0.9",
        "replay.prefill_steps env.num_envs learner.n_step_start": (
            f"{ANNEALING} replay.prefill_steps=32 learner.n_step_start=31"
        ),
        "replay.capacity_steps env.num_envs env.stack_frames learner.n_step_start": (
            f"{ANNEALING} {SMALL} learner.n_step_start=27"
        ),
        "replay.prefill_steps env.num_envs learner.self_prediction_steps": (
            f"{SELF_PREDICTION} replay.prefill_steps=32 learner.self_prediction_steps=31"
        ),
        "replay.capacity_steps env.num_envs env.stack_frames learner.self_prediction_steps": (
            f"{SELF_PREDICTION} {SMALL} learner.self_prediction_steps=27"
        ),
        "system.cuda_graphs toggles.annealing": f"{ANNEALING} system.cuda_graphs=true",
        "toggles.redo network.kind": f"{REDO} network.kind=impala",
        "toggles.redo toggles.distribution": f"{REDO} toggles.distribution=iqn",
        "toggles.redo toggles.noisy": f"{REDO} {NOISY}",
        "toggles.redo toggles.self_prediction": f"{REDO} {SELF_PREDICTION}",
        "replay.prefill_steps learner.redo_states": f"{REDO} replay.prefill_steps=255",
        "toggles.self_prediction toggles.distribution": f"{SELF_PREDICTION} toggles.distribution=iqn",
        "logging.rolling_episodes": "logging.rolling_episodes=100_001",
        "env.screen_size_pixels": "env.screen_size_pixels=321",
    },
    "r2d2_small": {
        "replay.burn_in_steps network.memory": "network.memory=none",
        "replay.burn_in_steps replay.sequence_period_steps": "replay.burn_in_steps=21",
        "replay.sequence_period_steps replay.sequence_steps": "replay.sequence_period_steps=41",
        "toggles.n_step replay.sequence_steps": "toggles.n_step=41",
        "replay.prefill_steps env.num_envs replay.sequence_steps": "replay.prefill_steps=671",
        "replay.capacity_steps env.num_envs replay.sequence_steps": (
            "replay.capacity_steps=671 replay.prefill_steps=671"
        ),
        "toggles.distribution replay.kind": "toggles.distribution=c51",
        "toggles.noisy replay.kind": NOISY,
        "toggles.random_shifts replay.kind": "toggles.random_shifts=true",
        "toggles.munchausen replay.kind": MUNCHAUSEN,
        "learner.compile replay.kind": "learner.compile=true",
        "system.cuda_graphs replay.kind": "system.cuda_graphs=true",
        "toggles.self_prediction replay.kind": SELF_PREDICTION,
        "toggles.annealing replay.kind": ANNEALING,
        "toggles.redo replay.kind": REDO,
        "toggles.redo network.memory": REDO,
        "toggles.resets network.memory": "toggles.resets=true",
    },
    "pqn": {
        "toggles.double replay.kind": "toggles.double=true",
        "toggles.prioritized replay.kind": "toggles.prioritized=true",
        "toggles.n_step replay.kind": "toggles.n_step=2",
        "toggles.noisy replay.kind": NOISY,
        "toggles.distribution replay.kind": "toggles.distribution=c51",
        "toggles.random_shifts replay.kind": "toggles.random_shifts=true",
        "toggles.munchausen replay.kind": MUNCHAUSEN,
        "toggles.self_prediction replay.kind": SELF_PREDICTION,
        "toggles.resets replay.kind": "toggles.resets=true",
        "toggles.annealing replay.kind": ANNEALING,
        "toggles.redo replay.kind": REDO,
        "learner.updates_per_period replay.kind": "learner.updates_per_period=2",
        "learner.target_rate replay.kind": "learner.target_rate=0.5",
        "learner.acting_network replay.kind": ACTING_WITH_TARGET,
        "learner.compile replay.kind": "learner.compile=true",
        "system.cuda_graphs replay.kind": "system.cuda_graphs=true",
        "learner.target_period_updates replay.kind": "learner.target_period_updates=2",
        "replay.capacity_steps env.num_envs replay.kind": "env.num_envs=127",
        "replay.capacity_steps env.num_envs env.frame_skip training.total_frames replay.kind": (
            "replay.prefill_steps=1_000 training.total_frames=15_872"
        ),
        "replay.capacity_steps learner.batch_size replay.kind": "learner.batch_size=192",
        "learner.batch_size learner.update_period_steps replay.kind": "learner.update_period_steps=48",
        "replay.kind actors.processes": "actors.mode=lockstep",
    },
    "apex_small": {
        "env.num_envs actors.processes": "env.num_envs=15",
        "actors.error_buffer_steps learner.update_period_steps": "learner.update_period_steps=10_001",
        "actors.error_buffer_steps actors.fragment_steps env.num_envs actors.processes": (
            "actors.error_buffer_steps=99"
        ),
        "actors.publish_period_updates actors.max_lag_updates": "actors.max_lag_updates=19",
        "system.workers actors.processes": "system.workers=1",
        "learner.compile actors.processes": "learner.compile=true",
        "system.cuda_graphs actors.processes": "system.cuda_graphs=true",
        "learner.acting_network actors.processes": ACTING_WITH_TARGET,
        "toggles.annealing actors.processes": ANNEALING,
        "toggles.self_prediction actors.processes": SELF_PREDICTION,
    },
    "catch_smoke": {
        "checkpoint.replay actors.mode": "env.num_envs=2 actors.mode=lockstep checkpoint.replay=false",
    },
}
"""By shipped spec: the keys of each rule, and the overrides that it refuses."""
LOSS_OF_A_PACKAGE = "learner.loss replay.kind"


def keys_named(key: str, problem: str) -> str:
    """Return the keys that a fault names as contradicting each other."""
    return " ".join([key, *re.findall(r" (?:with|and) (\S+) = ", problem.partition("; ")[0])])


@pytest.mark.parametrize(
    ("name", "overrides", "keys"),
    [(name, overrides, keys) for name, rows in REFUSED.items() for keys, overrides in rows.items()],
)
def test_contradiction_is_refused_with_its_keys_named(name: str, overrides: str, keys: str) -> None:
    with pytest.raises(SpecError) as refusal:
        load_spec(name, overrides.split())
    assert keys in [keys_named(fault.key, fault.problem) for fault in refusal.value.faults]


def test_loss_that_a_package_adds_is_refused_for_sequences() -> None:
    values = {**flatten(load_spec("r2d2_small").spec), "learner.loss": "of_a_package"}
    assert [keys_named(*found) for found in contradictions(values)] == [LOSS_OF_A_PACKAGE]


def test_every_rule_has_a_spec_that_it_refuses() -> None:
    rows = Counter([LOSS_OF_A_PACKAGE, *chain.from_iterable(REFUSED.values())])
    rules = Counter(" ".join(rule.keys) for rule in RULES)
    assert (rules - rows, rows - rules) == (Counter(), Counter())
