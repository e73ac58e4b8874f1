"""The values of Track B, and the errors of keys whose part is not chosen."""

import tomllib
from importlib.resources import files

import pytest

from atari_dqn.spec.errors import SpecError
from atari_dqn.spec.keys import KEYS
from atari_dqn.spec.loader import load_spec
from atari_dqn.spec.tracks import complete_track, load_track

TRACK_B_TEXT = files("atari_dqn.spec").joinpath("tracks/b.toml").read_text("utf-8")
OF_ITS_PARTS = {
    ("toggles.distribution", "none"), ("toggles.prioritized", True), ("exploration.kind", "linear"),
    ("toggles.dueling", True), ("network.kind", "dopamine"),
}  # fmt: skip
OF_LATER_PARTS = {
    name
    for name, key in KEYS.items()
    if not {(when.key, when.value) for when in key.when} <= OF_ITS_PARTS and key.section != "optimizer"
}
BASE_B = 'track = "B"\ngame = "pong"\nseed = 1\n'


def test_track_b_has_every_key_that_applies_except_game_and_seed():
    of_other_optimizers = {"gradient_decay", "squared_gradient_decay", "smoothing", "momentum"}
    absent = {"game", "seed"} | {f"optimizer.{leaf}" for leaf in of_other_optimizers} | OF_LATER_PARTS
    assert set(KEYS) - set(load_track("B")) == absent


def test_track_b_has_its_papers_numbers():
    track = load_track("B")
    table = {
        "toggles.double": True,
        "toggles.dueling": True,
        "toggles.prioritized": True,
        "toggles.n_step": 1,
        "env.sticky_probability": 0.25,
        "env.noop_max_frames": 0,
        "env.max_episode_frames": 108_000,
        "env.terminal_on_life_loss": False,
        "exploration.epsilon_end": 0.01,
        "replay.alpha": 0.6,
        "replay.beta_start": 0.4,
        "replay.beta_end": 1.0,
        "learner.loss": "huber",
        "learner.reduction": "mean",
        "learner.max_grad_norm": 10.0,
        "optimizer.kind": "adam",
        "optimizer.learning_rate": 6.25e-5,
        "optimizer.epsilon": 1.5e-4,
        "evaluation.max_episode_frames": 108_000,
    }
    assert {key: track[key] for key in table} == table


def test_every_line_of_track_b_has_a_comment_on_its_source():
    lines = [line for line in TRACK_B_TEXT.splitlines() if " = " in line and not line.startswith("#")]
    assert len(lines) == len(load_track("B"))
    assert [line for line in lines if "#" not in line] == ['track = "B"']


@pytest.mark.fault("W06")
@pytest.mark.parametrize("key", list(load_track("B")))
def test_key_taken_out_of_track_b_is_an_error_that_names_it(key: str):
    table = tomllib.loads(TRACK_B_TEXT)
    section, _, leaf = key.rpartition(".")
    del (table[section] if section else table)[leaf]
    with pytest.raises(SpecError, match=r"missing") as caught:
        complete_track(table, where="tracks/b.toml")
    assert key in [fault.key for fault in caught.value.faults]


def faults_of(path) -> str:
    with pytest.raises(SpecError) as caught:
        load_spec(path)
    assert len(caught.value.faults) == 1
    return str(caught.value)


@pytest.mark.fault("D20")
@pytest.mark.parametrize(
    "key",
    [
        *(f"replay.{leaf}" for leaf in ("alpha", "beta_start", "beta_end", "priority_offset")),
        "gates.min_effective_share",
    ],
)
def test_prioritized_key_of_a_uniform_run_names_the_toggle_and_both_remedies(write_spec, key: str):
    section, leaf = key.split(".")
    assert faults_of(write_spec(f"[{section}]\n{leaf} = 0.5\n")).endswith(
        f"{key}: belongs to toggles.prioritized = true, but toggles.prioritized is false; "
        "remove it, or set toggles.prioritized = true"
    )


@pytest.mark.fault("D20")
def test_prioritized_key_with_the_toggle_turned_off_is_an_error_on_track_b_too(write_spec):
    message = faults_of(write_spec("[toggles]\nprioritized = false\n[replay]\nalpha = 0.6\n", base=BASE_B))
    assert "replay.alpha: belongs to toggles.prioritized = true" in message


@pytest.mark.fault("D19")
@pytest.mark.parametrize(
    ("kind", "key", "owner"),
    [
        ("deepmind_rmsprop", "beta1", 'adam" or "radam'),
        ("adam", "smoothing", "torch_rmsprop"),
        ("torch_rmsprop", "gradient_decay", "deepmind_rmsprop"),
        ("deepmind_rmsprop", "momentum", "torch_rmsprop"),
    ],
)
def test_key_of_another_optimizer_is_an_error_that_names_its_owner(write_spec, kind, key, owner):
    message = faults_of(write_spec(f'[optimizer]\nkind = "{kind}"\n{key} = 0.5\n'))
    assert (
        f'optimizer.{key}: belongs to optimizer.kind = "{owner}", but optimizer.kind is "{kind}"' in message
    )


def test_prioritized_on_track_a_has_the_values_of_its_paper(write_spec):
    replay = load_spec(write_spec("[toggles]\nprioritized = true\n")).spec.replay
    assert (replay.alpha, replay.beta_start, replay.priority_offset) == (0.6, 0.4, 0.01)


def test_prioritized_turned_off_on_track_b_leaves_its_keys_unset(write_spec):
    resolved = load_spec(write_spec("[toggles]\nprioritized = false\n", base=BASE_B))
    replay = resolved.spec.replay
    assert (replay.alpha, replay.beta_start, replay.priority_offset) == (None, None, None)
    assert resolved.track_label == "B"
