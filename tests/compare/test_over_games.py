"""The games over which methods are aggregated and compared, and the methods that are left out."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atari_dqn.compare.aggregate import ScoresByGame, aggregates, improvements, shared_games
from atari_dqn.compare.comparison import Comparison, compare
from atari_dqn.compare.group import Method
from atari_dqn.compare.reference.studies import HumanRandom, human_random
from runs import make_run

GAMES = ("alien", "breakout", "pong", "qbert")
HUMANS: Mapping[str, HumanRandom] = {
    game: found for game in GAMES if (found := human_random(game)) is not None
}


def method(name: str) -> Method:
    return Method(label=name, track_label="A", agent="dqn")


def scores_of(coverage: Mapping[str, set[str]]) -> dict[Method, ScoresByGame]:
    return {method(name): {game: {1: 1.0} for game in sorted(games)} for name, games in coverage.items()}


coverages = st.lists(st.sets(st.sampled_from(GAMES)), max_size=5).map(
    lambda lists: {f"m{place}": games for place, games in enumerate(lists)}
)


@settings(max_examples=50, deadline=None, derandomize=True)
@given(coverages)
def test_all_methods_are_aggregated_over_the_same_games_which_each_of_them_plays(
    coverage: dict[str, set[str]],
):
    scores = scores_of(coverage)
    found = aggregates(scores, shared_games(scores), HUMANS)
    assert len({each.games for each in found}) <= 1
    assert all(set(each.games) <= coverage[each.method.label] for each in found)


@settings(max_examples=50, deadline=None, derandomize=True)
@given(coverages)
def test_methods_that_share_a_game_are_aggregated_over_all_that_they_share(coverage: dict[str, set[str]]):
    playing = {name: games for name, games in coverage.items() if games}
    common = set.intersection(*playing.values()) if playing else set()
    shared = shared_games(scores_of(coverage))
    if common:
        assert set(shared.games) == common
        assert {each.label for each in shared.methods} == set(playing)


@settings(max_examples=50, deadline=None, derandomize=True)
@given(coverages)
def test_a_method_is_aggregated_or_named_as_left_out(coverage: dict[str, set[str]]):
    shared = shared_games(scores_of(coverage))
    named = {each.label for each in (*shared.methods, *shared.left_out)}
    assert named == (set(coverage) if any(coverage.values()) else set())
    assert not set(shared.methods) & set(shared.left_out)


@settings(max_examples=50, deadline=None, derandomize=True)
@given(coverages)
def test_probabilities_of_improvement_are_over_the_games_that_all_share(
    coverage: dict[str, set[str]],
):
    scores = scores_of(coverage)
    shared = shared_games(scores)
    found = improvements(scores, shared)
    assert {each.games for each in found} <= {shared.games}
    assert len(found) == max(0, len(shared.methods) - 1)


def test_a_method_without_shared_games_does_not_keep_others_from_theirs():
    shared = shared_games(scores_of({"a": {"pong"}, "b": {"alien"}, "c": {"pong", "qbert"}}))
    assert (shared.games, [each.label for each in shared.methods]) == (("pong",), ["a", "c"])
    assert shared.left_out == {method("b"): "it has no score on pong, only on alien"}


def test_a_method_that_lacks_the_shared_games_is_left_out_for_that_though_others_play_its_game():
    coverage = {"a": {"pong", "alien"}, "b": {"pong"}, "c": {"pong"}, "d": {"alien"}}
    shared = shared_games(scores_of(coverage))
    assert shared.left_out == {method("d"): "it has no score on pong, only on alien"}


def test_methods_of_which_no_two_share_a_game_are_not_aggregated():
    shared = shared_games(scores_of({"a": {"pong"}, "b": {"alien"}}))
    assert (shared.games, shared.methods, len(shared.left_out)) == ((), (), 2)


def test_a_method_alone_is_aggregated_over_its_games():
    assert shared_games(scores_of({"a": {"pong", "alien"}})).games == ("alien", "pong")


def test_of_a_game_with_more_seeds_the_first_ones_are_aggregated_and_the_others_named():
    best, worst = ({game: getattr(HUMANS[game], name) for game in GAMES} for name in ("human", "random"))
    scores = {
        method("a"): {
            "alien": {7: worst["alien"], 2: best["alien"], 1: best["alien"]},
            "pong": {3: best["pong"], 4: best["pong"]},
        }
    }
    (found,) = aggregates(scores, shared_games(scores), HUMANS)
    assert (found.n, found.estimates["mean"].value) == (2, 1.0)
    assert found.notes == ("alien: seeds 7 are left out, because another game has only 2",)


@pytest.fixture
def with_toy(tmp_path: Path) -> Comparison:
    """Two methods on Pong, and a third on the toy game, which no table of human scores has."""
    plain = make_run(tmp_path / "plain", [10.0])
    double = make_run(tmp_path / "double", [0.0], overrides=["toggles.double=true"])
    catch = make_run(tmp_path / "catch", [3.0], spec="catch_smoke.toml")
    return compare([plain, double, catch], human_table="atari57")


def test_a_group_without_a_human_scored_game_does_not_disable_sharing(with_toy: Comparison):
    assert [each.games for each in with_toy.aggregates] == [("pong",), ("pong",)]
    assert not any("share no game" in note for each in with_toy.aggregates for note in each.notes)


def test_a_group_without_a_human_scored_game_is_named_as_left_out(with_toy: Comparison):
    (warning,) = [each for each in with_toy.warnings if "not human-normalised" in each]
    assert warning == "catch_smoke: not human-normalised: it has no score that can be normalised"


def test_seeds_without_a_part_in_the_probability_of_improvement_are_named(tmp_path: Path):
    runs = [
        make_run(
            tmp_path / f"{game}{seed}{double}",
            [1.0],
            overrides=[f"game={game}", f"seed={seed}", f"toggles.double={double}"],
        )
        for game, seed in (("carnival", 1), ("carnival", 2), ("pooyan", 1))
        for double in ("false", "true")
    ]
    noted = [each for each in compare(runs, human_table="atari57").warnings if "left out" in each]
    assert noted == [
        f"pong_trackA double={double}: probability of improvement: carnival: seeds 2 are left out, "
        "because another game has only 1"
        for double in ("false", "true")
    ]


def test_a_game_that_the_table_of_human_scores_lacks_is_named(tmp_path: Path):
    runs = [make_run(tmp_path / game, [1.0], overrides=[f"game={game}"]) for game in ("pong", "surround")]
    warnings = compare(runs, human_table="nature2015").warnings
    assert "surround: the human-normalised scores are without it, because their table lacks it" in warnings
