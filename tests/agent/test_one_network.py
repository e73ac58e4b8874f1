"""A target network that would be copied after every update is the online network itself."""

import copy
from pathlib import Path

import pytest
import torch
from parts import make_batch

from atari_dqn.agent.learner import Learner
from atari_dqn.assembly import parts as assembly
from atari_dqn.assembly.acceleration import Plain
from atari_dqn.assembly.parts import build_learner
from atari_dqn.run.checkpoint.state_tree import tree_digest
from atari_dqn.spec.loader import load_spec
from atari_dqn.types import GameInfo

INFO = GameInfo(game="catch", action_names=("noop", "left", "right"), frame_shape=(36, 36), rom_md5="")
TINY_CATCH = Path(__file__).parents[1] / "tiny_catch.toml"


def made(*overrides: str) -> Learner:
    spec = load_spec(TINY_CATCH, ["learner.target_period_updates=1", *overrides]).spec
    return build_learner(spec, INFO, torch.device("cpu"), Plain())


@pytest.mark.parametrize(
    "overrides",
    [
        (),
        ("toggles.double=true",),
        ("toggles.double=true", "toggles.distribution=c51", "toggles.dueling=true"),
        ("toggles.double=true", "toggles.noisy=true"),
        ("toggles.double=true", "toggles.distribution=iqn"),
        ("toggles.double=true", "toggles.random_shifts=true"),
        ("toggles.munchausen=true",),
    ],
    ids=" ".join,
)
def test_network_that_is_its_own_target_learns_as_one_copied_after_every_update(
    overrides: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    one = made(*overrides)
    monkeypatch.setattr(assembly, "is_own_target", lambda spec: False)
    two = made(*overrides)
    assert one.target is one.online
    assert two.target is not two.online
    for _ in range(4):
        one.update(make_batch())
        two.update(make_batch())
    assert tree_digest(one.state_dict()) == tree_digest(two.state_dict())


def test_network_that_is_its_own_target_is_restored_from_its_state() -> None:
    saved, loaded = made(), made("seed=2")
    saved.update(make_batch())
    loaded.load_state_dict(copy.deepcopy(saved.state_dict()))
    for learner in (saved, loaded):
        learner.update(make_batch())
    assert tree_digest(loaded.state_dict()) == tree_digest(saved.state_dict())


def test_network_that_is_its_own_target_takes_over_the_online_weights() -> None:
    loaded, other = made(), made("seed=2")
    state = copy.deepcopy(loaded.state_dict())
    state["target"] = copy.deepcopy(other.state_dict()["online"])
    loaded.load_state_dict(state)
    assert tree_digest(loaded.state_dict()["online"]) == tree_digest(state["online"])


def test_network_that_chooses_as_it_rates_is_asked_once_about_what_comes_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    learner = made("toggles.double=true")
    asked = []
    encode = learner.online.torso.encode

    def noted(frames: torch.Tensor) -> torch.Tensor:
        asked.append(frames)
        return encode(frames)

    monkeypatch.setattr(learner.online.torso, "encode", noted)
    batch = make_batch()
    learner.update(batch)
    assert [torch.equal(frames, batch.s_t) for frames in asked].count(True) == 1
