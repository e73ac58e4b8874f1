from pathlib import Path

import pytest

from atari_dqn.spec.errors import SpecError
from atari_dqn.spec.history import ADDED
from atari_dqn.spec.keys import KEYS
from atari_dqn.spec.loader import load_resolved, load_spec
from atari_dqn.spec.render import resolved_toml

RUNS = Path(__file__).parents[2] / "runs"
EARLIER_RUN = Path(__file__).with_name("earlier_run.toml")


def test_spec_of_an_earlier_run_still_loads_with_the_added_keys_at_what_leaves_it_as_it_was() -> None:
    spec = load_resolved(EARLIER_RUN).spec
    assert (spec.learner.accumulate, spec.checkpoint.replay, spec.gates.min_effective_share) == (
        1,
        True,
        0.02,
    )


def test_added_keys_move_no_deviation_of_an_earlier_run() -> None:
    assert not ADDED.keys() & set(load_resolved(EARLIER_RUN).deviations)


def test_run_of_c51_made_before_there_was_a_choice_goes_on_with_the_divergence_as_its_priority(
    tmp_path: Path,
) -> None:
    path = tmp_path / "spec.toml"
    complete = resolved_toml(load_spec(RUNS / "atari100k_der.toml"))
    path.write_text("".join(line for line in complete.splitlines(True) if not line.startswith("priority =")))
    assert load_resolved(path).spec.replay.priority == "kl"


def test_run_that_began_with_decays_that_a_new_run_is_refused_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "spec.toml"
    earlier = resolved_toml(load_spec(RUNS / "pong_trackA.toml"))
    path.write_text(earlier.replace("\ngradient_decay = 0.95", "\ngradient_decay = 0.9"))
    assert load_resolved(path).spec.optimizer.gradient_decay == 0.9


def test_added_keys_are_keys() -> None:
    assert ADDED.keys() <= KEYS.keys()


def test_a_key_that_was_always_there_is_still_missed(tmp_path: Path) -> None:
    path = tmp_path / "spec.toml"
    path.write_text(EARLIER_RUN.read_text().replace("batch_size = 32\n", ""))
    with pytest.raises(SpecError, match=r"learner\.batch_size: missing"):
        load_resolved(path)
