"""A file of another kind than a command expects is named with the command for it."""

from pathlib import Path

import pytest

from atari_dqn.scale.members import load_sweep
from atari_dqn.scale.tuning.tune_file import load_tune
from atari_dqn.spec.errors import SpecError
from atari_dqn.spec.loader import load_spec

SPEC = 'track = "A"\ngame = "pong"\nseed = 1\n'
SWEEP = 'spec = "c51"\nseeds = 2\n[methods.a]\n'
PLAIN_SWEEP = 'spec = "c51"\n'
TUNE = 'spec = "c51"\n[space]\nlearner.discount = { uniform = [0.9, 0.99] }\n[budget]\ntrials = 2\n'


@pytest.mark.parametrize(
    ("load", "text", "problem"),
    [
        (load_spec, SWEEP, "is a sweep file; train it with `dqn sweep"),
        (load_spec, PLAIN_SWEEP, "is a sweep file; train it with `dqn sweep"),
        (load_spec, TUNE, "is a tune file; search with it by `dqn tune"),
        (load_sweep, SPEC, "is a spec; train it with `dqn train"),
        (load_sweep, TUNE, "is a tune file; search with it by `dqn tune"),
        (load_tune, SPEC, "is a spec; train it with `dqn train"),
        (load_tune, SWEEP, "is a sweep file; train it with `dqn sweep"),
    ],
)
def test_another_kind_of_file_is_one_error_with_its_command(tmp_path: Path, load, text: str, problem: str):
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(SpecError) as caught:
        load(path)
    assert str(caught.value) == f"{path}: {problem} {path}`"


@pytest.mark.parametrize(
    ("load", "text", "problem"),
    [
        (load_spec, SPEC + "[grid]\na = 1\n", "unknown section"),
        (load_spec, "seeds = 2\n", "unknown key"),
        (load_sweep, SWEEP + "[learner]\nbatch_size = 2\n", "a key of the spec"),
        (load_tune, PLAIN_SWEEP, "space: has no key"),
    ],
)
def test_a_file_that_may_be_of_the_expected_kind_has_the_faults_of_its_keys(
    tmp_path: Path, load, text: str, problem: str
):
    (tmp_path / "mine.toml").write_text(text)
    with pytest.raises(SpecError, match=problem):
        load(tmp_path / "mine.toml")


@pytest.mark.parametrize(
    ("load", "name", "problem"),
    [
        (load_spec, "ladder_quick", "is the name of a shipped sweep; train it with `dqn sweep"),
        (load_spec, "pong_learning_rate", "is the name of a shipped tune; search with it by `dqn tune"),
        (load_sweep, "pong_quick", "is the name of a shipped spec; train it with `dqn train"),
        (load_tune, "ladder_quick", "is the name of a shipped sweep; train it with `dqn sweep"),
    ],
)
def test_the_name_of_a_shipped_file_of_another_kind_is_named_with_its_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, load, name: str, problem: str
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SpecError) as caught:
        load(Path(name))
    assert str(caught.value) == f"{name}: {problem} {name}`"
