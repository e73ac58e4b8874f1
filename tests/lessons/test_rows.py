"""Rows of the ledger that belong to no single module; docs/lessons.md says where the others are tested."""

from dataclasses import fields
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from tiny import begun, ticks_of, tiny_spec

from atari_dqn.agent.network import QNetwork
from atari_dqn.cli.app import app
from atari_dqn.replay import transfer


@pytest.mark.fault("D22")
def test_diff_shows_the_differing_keys_alone_with_both_values(tmp_path: Path, capsys) -> None:
    for name, discount in (("a", 0.9), ("b", 0.8)):
        text = f'track = "A"\ngame = "pong"\nseed = 1\n[learner]\ndiscount = {discount}\n'
        (tmp_path / f"{name}.toml").write_text(text)
    app(["spec", "diff", str(tmp_path / "a.toml"), str(tmp_path / "b.toml")], standalone_mode=False)
    printed = capsys.readouterr().out
    assert "learner.discount" in printed
    assert printed.index("0.9") < printed.index("0.8")
    assert not any(word in printed for word in ("seed", "batch_size", "game"))


@pytest.mark.fault("D22")
def test_diff_colours_the_values_on_a_terminal(tmp_path: Path, capsys, monkeypatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    for seed in (1, 2):
        (tmp_path / f"{seed}.toml").write_text(f'track = "A"\ngame = "pong"\nseed = {seed}\n')
    app(["spec", "diff", str(tmp_path / "1.toml"), str(tmp_path / "2.toml")], standalone_mode=False)
    printed = capsys.readouterr().out
    assert "\x1b[1mseed" in printed
    assert "\x1b[31m1" in printed
    assert "\x1b[32m2" in printed


@pytest.mark.fault("M09")
def test_two_networks_exist_one_acts_and_learns_and_the_other_is_the_target(monkeypatch) -> None:
    made: list[QNetwork] = []
    make = QNetwork.__init__

    def noted(self: QNetwork, *values, **named) -> None:
        made.append(self)
        make(self, *values, **named)

    monkeypatch.setattr(QNetwork, "__init__", noted)
    with begun(tiny_spec("toggles.double=true", "toggles.dueling=true")) as training:
        ticks_of(training, 80)
        learner = training.learner
        assert [id(network) for network in made] == [id(learner.online), id(learner.target)]
        assert training.actor.network is learner.online


@pytest.mark.fault("W03")
def test_state_of_a_training_is_that_of_every_part_that_has_one() -> None:
    with begun(tiny_spec()) as training:
        parts = {field.name: getattr(training, field.name) for field in fields(training)}
        parts["lanes"] = parts.pop("envs")  # the state's names for them since its first version
        parts["policy"] = parts.pop("actor")
        assert set(training.state_dict()) == {
            name for name, part in parts.items() if hasattr(part, "state_dict")
        }


@pytest.mark.fault("P01")
@pytest.mark.parametrize("envs", [1, 3])
def test_each_frame_is_copied_to_the_replay_once(envs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    copied: list[np.ndarray] = []
    write = transfer._ToRam.write

    def noted(writer: transfer._ToRam, values: np.ndarray, first: int) -> None:
        if values.dtype == np.uint8:
            copied.append(values.copy())
        write(writer, values, first)

    monkeypatch.setattr(transfer._ToRam, "write", noted)
    with begun(tiny_spec(f"env.num_envs={envs}")) as training:
        ticks_of(training, 90)
    assert [frames.shape[0] for frames in copied] == [envs] * 91  # the reset's, and one row an iteration
    assert not all(np.array_equal(before, after) for before, after in pairwise(copied))
