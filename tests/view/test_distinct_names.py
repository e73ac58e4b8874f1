"""Names of runs are shortened to a column, and different ones stay different."""

import random

import pytest

from atari_dqn.view.names import distinct_names, shortened


def test_a_name_that_fits_is_whole_and_a_longer_one_loses_its_middle():
    assert shortened("pong_seed1", 10) == "pong_seed1"
    assert shortened("phoenix_with_a_long_name_seed12", 16) == "phoenix…e_seed12"


def test_names_that_differ_in_the_middle_keep_the_words_at_which_they_do():
    names = [f"pong_quick_{method}_pong_seed{seed}" for method in ("double", "dueling") for seed in (1, 2)]
    assert list(distinct_names(names, 20).values()) == [
        "…double_pong_seed1", "…double_pong_seed2", "…dueling_pong_seed1", "…dueling_pong_seed2",
    ]  # fmt: skip


def test_names_that_differ_in_many_places_keep_these():
    names = [
        f"pong_trackA_batch_size={size},double={double}_pong_seed{seed}"
        for size in (16, 128) for double in ("true", "false") for seed in (1, 12)
    ]  # fmt: skip
    assert list(distinct_names(names, 16).values()) == [
        "…16,d…tru…seed1", "…16,d…tru…seed12", "…16,d…fal…seed1", "…16,d…fal…seed12",
        "…128,…tru…seed1", "…128,…tru…seed12", "…128,…fal…seed1", "…128,…fal…seed12",
    ]  # fmt: skip


def test_the_order_is_kept_and_a_name_that_is_given_twice_counts_once():
    assert distinct_names(["b", "a", "b"], 16) == {"b": "b", "a": "a"}
    assert list(distinct_names(["b", "a", "b"], 16)) == ["b", "a"]


@pytest.mark.parametrize("width", [2, 4, 9])
def test_different_names_stay_different_whatever_they_are(width: int):
    chance = random.Random(width)
    for _ in range(500):
        names = {
            "".join(chance.choices("ab1_", k=chance.randint(1, 14))) for _ in range(chance.randint(1, 9))
        }
        assert len(set(distinct_names(names, width).values())) == len(names)
