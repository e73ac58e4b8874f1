"""The name of a spec's agent: what it says of toggles, memory, rollouts and the network."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from atari_dqn.compare.reference.agents import agent_name
from atari_dqn.spec.keys import flatten
from atari_dqn.spec.loader import load_spec

RUNS = Path(__file__).parents[2] / "runs"
TRACK_A = flatten(load_spec(RUNS / "pong_trackA.toml").spec)
ALL = {"double": True, "dueling": True, "prioritized": True}


def name_of(spec: str, overrides: Sequence[str] = ()) -> str:
    return agent_name(flatten(load_spec(RUNS / f"{spec}.toml", overrides).spec))


@pytest.mark.parametrize(
    ("on", "name"),
    [
        ({}, "dqn"),
        (ALL, "prioritized_dueling_ddqn"),
        ({"double": True, "prioritized": True, "n_step": 3}, "prioritized_ddqn, 3-step"),
        ({"distribution": "c51"}, "c51"),
        ({"distribution": "qr_dqn", "n_step": 3}, "qr_dqn, 3-step"),
        ({"munchausen": True}, "m_dqn"),
        ({"munchausen": True, "distribution": "iqn"}, "m_iqn"),
        ({"noisy": True}, "noisy_dqn"),
        ({"noisy": True, "distribution": "c51"}, "dqn, c51, noisy"),
        (ALL | {"noisy": True, "distribution": "c51", "n_step": 3}, "rainbow"),
        (ALL | {"noisy": True, "distribution": "c51", "n_step": 20}, "rainbow, 20-step"),
        (ALL | {"noisy": True, "distribution": "c51"}, "rainbow, 1-step"),
        (ALL | {"distribution": "iqn", "n_step": 3}, "prioritized_dueling_ddqn, iqn, 3-step"),
    ],
)
def test_toggles_have_the_literature_s_name(on: dict[str, Any], name: str):
    assert agent_name(TRACK_A | {f"toggles.{toggle}": value for toggle, value in on.items()}) == name


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ("pong_trackB", "prioritized_dueling_ddqn"),
        ("rainbow", "rainbow"),
        ("iqn", "iqn"),
        ("m_iqn", "m_iqn"),
        ("pong_1m_dqn", "dqn"),
        ("dopamine_dqn", "dqn"),
        ("dopamine_rainbow", "prioritized_dqn, c51, 3-step"),
        ("drqn", "drqn"),
        ("r2d2", "r2d2"),
        ("pqn", "pqn"),
        ("atari100k_der", "rainbow, 20-step, data_efficient"),
        ("atari100k_der_dopamine", "rainbow, 10-step, dopamine"),
        ("pong_quick", "prioritized_dueling_ddqn, 5-step, data_efficient"),
    ],
)
def test_shipped_specs_have_the_names_of_their_agents(spec: str, name: str):
    assert name_of(spec) == name


@pytest.mark.parametrize(
    ("overrides", "name"),
    [
        (["network.memory=gru"], "dqn, gru"),
        (["network.memory=lstm", "toggles.double=true"], "double_dqn, lstm"),
        (["replay.kind=sequences", "replay.burn_in_steps=0"], "dqn, sequences"),
        (["env.stack_frames=1"], "dqn, stack_frames=1"),
        (["network.hidden_units=256"], "dqn, hidden_units=256"),
        (["network.kind=impala", "network.hidden_units=512"], "dqn, impala"),
        (["network.kind=impala", "network.width=2"], "dqn, impala, hidden_units=256, width=2"),
        (["network.kind=nature_layer_norm"], "dqn, nature_layer_norm"),
        (["toggles.dueling=true", "network.kind=dopamine"], "dueling_dqn, dopamine"),
        (["toggles.dueling=true", "network.shared_hidden=true"], "dueling_dqn, shared_hidden=true"),
    ],
)
def test_memory_sequences_and_another_network_follow_the_name(overrides: list[str], name: str):
    assert name_of("pong_trackA", overrides) == name
