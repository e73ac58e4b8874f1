"""Wrong arguments of the public functions are errors in words, which name the argument."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny import TINY_CATCH

import atari_dqn as dqn
from atari_dqn.errors import UserError
from atari_dqn.spec.loader import load_spec

SPEC = load_spec(TINY_CATCH).spec


def begins(message: str) -> str:
    return f"^{re.escape(message)}"


@pytest.mark.parametrize(("wrong", "kind"), [(SPEC, "an object of type Spec"), (None, "None"), (3, "an ob")])
def test_training_takes_the_name_of_a_spec_or_a_file(wrong: Any, kind: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=begins(f"spec: found {kind}")):
        dqn.train(wrong, run_dir=tmp_path / "run")


def test_training_names_the_file_of_a_run_s_spec(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"or a file, such as spec\.toml of a run directory"):
        dqn.train(SPEC, run_dir=tmp_path / "run")


def test_directory_of_a_new_run_is_a_path() -> None:
    with pytest.raises(UserError, match=begins("run_dir: found an object of type int, expected a path")):
        dqn.train(TINY_CATCH, run_dir=3)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (["seed=2"], 'found an object of type list, expected a mapping, such as {"learner.batch_size": 64}'),
        ([], "found an object of type list,"),
        ({3: 1}, 'found the key 3, expected one such as "learner.batch_size"'),
        ({"seed": -1}, "seed: found -1, expected an integer at least 0"),
        ({"sed": 1}, 'sed: unknown key; did you mean "seed"?'),
    ],
)
def test_wrong_override_is_named_as_the_argument(wrong: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=begins(f"overrides: {message}")):
        dqn.train(TINY_CATCH, overrides=wrong, run_dir=tmp_path / "run")


@pytest.mark.parametrize("name", ["abacus", 3])
def test_wrong_device_is_named_as_the_argument(name: Any, trained: Path) -> None:
    with pytest.raises(
        UserError, match=begins(f"device: found {name!r}, expected auto, cpu, cuda or cuda:N")
    ):
        dqn.load(trained, device=name)


def test_directory_that_exists_is_named_as_the_argument(trained: Path) -> None:
    with pytest.raises(UserError, match=r"or name another directory with run_dir$"):
        dqn.train(TINY_CATCH, run_dir=trained)


def test_environment_takes_no_agent(trained: Path) -> None:
    expected = "the name of a shipped spec, a file, or the `spec` of an agent or a run"
    with pytest.raises(UserError, match=begins(f"spec: found an object of type Agent, expected {expected}")):
        dqn.make_env(dqn.load(trained))


@pytest.mark.parametrize("open_it", [dqn.load, dqn.Run])
def test_run_is_opened_by_its_path(open_it: Any, trained: Path) -> None:
    with pytest.raises(
        UserError, match=begins("path: found an object of type Run, expected the path of a run")
    ):
        open_it(dqn.Run(trained))


@pytest.mark.parametrize("name", ["episodes", "envs"])
@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("3", "found '3', expected a whole number"),
        (2.0, "found 2.0,"),
        (True, "found True,"),
        (0, "found 0, "),
    ],
)
def test_number_of_games_is_a_whole_number(trained: Path, name: str, value: Any, message: str) -> None:
    with pytest.raises(UserError, match=begins(f"{name}: {message}")):
        dqn.load(trained).evaluate(**{name: value})


def test_number_of_numpy_is_a_number_of_games(trained: Path) -> None:
    agent = dqn.load(trained)
    assert agent.evaluate(episodes=np.int64(2)).score == agent.evaluate(episodes=2).score


@pytest.mark.parametrize("runs", [[], ()])
def test_comparison_of_no_run_is_refused(runs: Any) -> None:
    with pytest.raises(
        UserError,
        match=begins("runs: found an empty list, expected at least one: a run, or the path of a run,"),
    ):
        dqn.compare(runs)


@pytest.mark.parametrize(("runs", "kind"), [(None, "None"), ([7], "an object of type int")])
def test_comparison_takes_runs_and_paths(runs: Any, kind: str) -> None:
    with pytest.raises(UserError, match=begins(f"runs: found {kind}, expected a run, or the path of a run,")):
        dqn.compare(runs)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"at_frames": "20k"}, "at_frames: found '20k', expected a whole number"),
        ({"at_frames": -5}, "at_frames: found -5, expected at least 1"),
        ({"to_score": "high"}, "to_score: found 'high', expected a finite number"),
        ({"to_score": float("nan")}, "to_score: found nan, expected a finite number"),
    ],
)
def test_number_that_a_comparison_cannot_use_is_refused(trained: Path, options: Any, message: str) -> None:
    with pytest.raises(UserError, match=begins(message)):
        dqn.compare(trained, **options)


def test_runs_of_any_sequence_are_compared(trained: Path) -> None:
    for runs in (str(trained), trained, dqn.Run(trained), (dqn.Run(trained), trained)):
        assert [result.group.game for result in dqn.compare(runs).results] == ["catch"]
