"""The estimate of the median over 57 games, from published scores of agents whose median is known."""

from pathlib import Path

import pytest

from atari_dqn.compare.comparison import compare
from atari_dqn.compare.median_estimate import median_estimates, subsets
from atari_dqn.compare.reference.studies import human_random
from runs import make_run

FIVE, TEN = subsets()
RAINBOW = {
    "battle_zone": 62010.0,
    "double_dunk": -0.3,
    "name_this_game": 13136.0,
    "phoenix": 108528.6,
    "qbert": 33817.5,
}
"""Hessel et al. (2018), Table 6; the median over 57 games is 227 % or 223 %."""


def normalised(scores: dict[str, float]) -> dict[str, float]:
    found = {game: human_random(game, "atari57") for game in scores}
    return {game: human.normalised(scores[game]) for game, human in found.items() if human is not None}


def test_the_estimate_of_rainbow_is_near_its_published_median():
    assert FIVE.estimate(normalised(RAINBOW)) == pytest.approx(227.0, rel=0.02)


def test_an_agent_as_good_as_a_human_everywhere_has_about_100_percent():
    by_hand = 10 ** (sum(FIVE.coefficients.values()) * 2.00432137378) - 1
    assert FIVE.estimate(dict.fromkeys(FIVE.coefficients, 1.0)) == pytest.approx(by_hand)


def test_a_score_below_random_counts_as_random():
    worse, random = dict.fromkeys(TEN.coefficients, -3.0), dict.fromkeys(TEN.coefficients, 0.0)
    assert TEN.estimate(worse) == TEN.estimate(random) == 0.0


def test_only_a_method_with_all_five_games_is_estimated(tmp_path: Path):
    for game in [*FIVE.coefficients, "pong"]:
        make_run(tmp_path / game, [1.0, 100.0], spec="pong_trackA.toml", overrides=[f"game={game}"])
    games = [*FIVE.coefficients]
    (estimate,) = median_estimates(compare([tmp_path / game for game in games], human_table="atari57"))
    assert (estimate.subset.name, estimate.method) == ("Atari-5", "pong_trackA")
    assert "estimated from Atari-5 as" in str(estimate)
    assert "published error 10.4%" in str(estimate)
    assert median_estimates(compare([tmp_path / game for game in games[1:]], human_table="atari57")) == []


def test_the_estimate_is_of_the_mean_over_seeds(tmp_path: Path):
    estimates = []
    for name, finals in (("two", [0.0, 200.0]), ("one", [100.0])):
        runs = [
            make_run(
                tmp_path / f"{name}_{game}{seed}",
                [final],
                spec="pong_trackA.toml",
                overrides=[f"game={game}", f"seed={seed}"],
            )
            for game in FIVE.coefficients
            for seed, final in enumerate(finals, start=1)
        ]
        estimates += median_estimates(compare(runs, human_table="atari57"))
    two, one = estimates
    assert two.percent == pytest.approx(one.percent)
