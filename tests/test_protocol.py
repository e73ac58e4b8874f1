import dataclasses
from pathlib import Path

import pytest

from atari_dqn.spec.loader import load_spec
from atari_dqn.spec.protocol import Protocol, evaluation_protocol

PONG = Path(__file__).parents[1] / "runs" / "pong_trackA.toml"
ROM_MD5 = "60e0ea3cbe0913d39803477945e9e5ec"


def protocol(*overrides: str) -> Protocol:
    spec = load_spec(PONG, overrides).spec
    return evaluation_protocol(spec, episodes=30, checkpoint="last", ale_version="0.12.1", rom_md5=ROM_MD5)


def test_short_form_of_a_protocol_is_one_line():
    assert protocol().short() == (
        "ε 0.05 · sticky 0 · no-op 1–30 · cap 18,000 frames · minimal actions · skip 4 · 84×84 area · "
        "30 episodes · last weights · trained with life loss terminal and rewards within ±1 · "
        "ale-py 0.12.1 · ROM 60e0ea3c"
    )


def test_short_form_says_that_rewards_were_not_clipped():
    assert (
        "trained with life loss terminal and unclipped rewards ·"
        in protocol("learner.max_abs_reward=inf").short()
    )


def test_short_form_says_how_many_frames_were_obscured():
    assert " · sticky 0 · flicker 0.5 · no-op 1–30 · " in protocol("env.flicker_probability=0.5").short()


def test_fingerprint_without_flicker_is_that_of_earlier_versions():
    assert protocol().digest() == "9fb95e78823e"


def test_missing_values_of_the_toy_game_are_dashes():
    toy = dataclasses.replace(protocol("env.noop_max_frames=0"), ale_version="", rom_md5="")
    assert toy.short().endswith("ale-py – · ROM –")
    assert "· no no-ops ·" in toy.short()


def altered(value: object) -> object:
    if isinstance(value, bool):
        return not value
    return "x" + value if isinstance(value, str) else value + 1  # type: ignore[operator]


@pytest.mark.parametrize("field", [field.name for field in dataclasses.fields(Protocol)])
def test_fingerprint_changes_with_every_field(field: str):
    other = dataclasses.replace(protocol(), **{field: altered(getattr(protocol(), field))})
    assert other.digest() != protocol().digest()
    assert other.short() != protocol().short()


PROTOCOL_KEYS = {
    "env.sticky_probability=0.25": "sticky_probability",
    "env.flicker_probability=0.5": "flicker_probability",
    "env.noop_max_frames=0": "noop_max_frames",
    "evaluation.max_episode_frames=108_000": "max_episode_frames",
    "evaluation.epsilon=0.001": "epsilon",
    "env.full_action_set=true": "full_action_set",
    "env.frame_skip=5": "frame_skip",
    "env.resize=bilinear": "resize",
    "env.screen_size_pixels=96": "screen_size_pixels",
    "env.terminal_on_life_loss=false": "training_terminal_on_life_loss",
    "learner.max_abs_reward=inf": "training_max_abs_reward",
}


@pytest.mark.parametrize(("override", "field"), PROTOCOL_KEYS.items())
def test_spec_key_of_the_protocol_sets_its_field_only(override: str, field: str):
    changed, usual = dataclasses.asdict(protocol(override)), dataclasses.asdict(protocol())
    assert {name for name in usual if changed[name] != usual[name]} == {field}


def test_training_keys_outside_the_protocol_do_not_change_the_fingerprint():
    assert protocol("learner.batch_size=64", "env.max_episode_frames=9000").digest() == protocol().digest()
