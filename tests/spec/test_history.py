from pathlib import Path

import pytest

from atari_dqn.spec.errors import SpecError
from atari_dqn.spec.history import ADDED
from atari_dqn.spec.keys import KEYS
from atari_dqn.spec.loader import load_resolved

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


def test_added_keys_are_keys() -> None:
    assert ADDED.keys() <= KEYS.keys()


def test_a_key_that_was_always_there_is_still_missed(tmp_path: Path) -> None:
    path = tmp_path / "spec.toml"
    path.write_text(EARLIER_RUN.read_text().replace("batch_size = 32\n", ""))
    with pytest.raises(SpecError, match=r"learner\.batch_size: missing"):
        load_resolved(path)
