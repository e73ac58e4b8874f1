"""Scores of games that the frame cap truncated are marked everywhere, and not compared with others."""

import csv
import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from atari_dqn.compare.comparison import Comparison, GroupResult, compare
from atari_dqn.compare.document import comparison_csv, comparison_document
from atari_dqn.compare.output.learning_curves import group_curves
from atari_dqn.compare.output.page import page
from atari_dqn.compare.reference.caps import cut_in_words, published_caps, stands_for_games
from atari_dqn.compare.reference.match import Subject, references
from atari_dqn.files.atomic import json_document
from atari_dqn.run.scores import EvaluationEpisode, EvaluationScore
from atari_dqn.view.comparison_tables import comparison_view
from runs import make_run

SHORT = ["evaluation.max_episode_frames=1_000"]


def shown(comparison: Comparison) -> str:
    console = Console(width=80, file=io.StringIO())
    console.print(comparison_view(comparison))
    return console.file.getvalue()


@pytest.fixture
def cut(tmp_path: Path) -> Comparison:
    """Compare games truncated at 1,000 frames, as in pong_smoke_b, with complete games of another method."""
    run = make_run(tmp_path / "cut", [-5.0, -6.0], overrides=SHORT, frame_caps=2, episodes=2)
    whole = make_run(tmp_path / "whole", [-20.0, 10.0], overrides=["toggles.double=true"])
    return compare([run, whole], human_table="atari57")


def of(comparison: Comparison) -> GroupResult:
    return comparison.results[0]


@pytest.mark.parametrize(
    ("frame_caps", "cap", "stands"),
    [(0, 1_000, True), (1, 1_000, False), (1, 18_000, True), (1, 108_000, True), (1, None, False)],
)
def test_a_cut_score_stands_for_games_where_published_ones_were_cut_too(
    frame_caps: int, cap: int | None, stands: bool
):
    assert stands_for_games(frame_caps, cap) is stands


def cut_at_five_minutes(folder: Path, human_table: str) -> Comparison:
    run = make_run(folder / "run", [300.0], spec="breakout_trackA.toml", frame_caps=30)
    return compare([run], human_table=human_table)


def test_a_cut_score_is_not_normalised_by_people_who_played_longer(tmp_path: Path):
    comparison = cut_at_five_minutes(tmp_path, "atari57")
    assert comparison.aggregates == ()
    assert (
        "breakout breakout_trackA: † not human-normalised: games were cut at 18,000 frames, those of people "
        "at 108,000 (atari57)"
    ) in comparison.warnings


def test_a_cut_score_is_normalised_by_people_who_played_as_long(tmp_path: Path):
    (aggregate,) = cut_at_five_minutes(tmp_path, "nature2015").aggregates
    assert aggregate.estimates["mean"].value == pytest.approx((300.0 - 1.7) / (31.8 - 1.7))


def test_time_to_the_human_score_ignores_cut_games_of_another_length(tmp_path: Path):
    (result,) = cut_at_five_minutes(tmp_path, "atari57").results
    assert result.time_to_score is not None
    assert (result.time_to_score.score, result.time_to_score.reached) == (30.5, 0)


def test_published_caps_are_those_of_the_sources():
    assert published_caps() == {18_000, 108_000, 400_000}


def test_a_cut_score_says_how_many_games_were_cut_and_where():
    assert cut_in_words(1, 2, 1_000) == "1 of 2 games were cut at 1,000 frames, as in no published score"


@pytest.mark.fault("H07")
def test_a_cut_score_is_not_human_normalised(cut: Comparison):
    assert [each.method for each in cut.aggregates] == [cut.results[1].group.method]


@pytest.mark.fault("H07")
def test_a_cut_score_is_compared_with_no_published_evaluation(cut: Comparison):
    assert {each.measure for each in of(cut).references} == {"training"}


def test_a_cut_score_is_not_compared_with_whole_games(cut: Comparison):
    assert cut.improvements == ()


def test_one_seed_with_cut_games_keeps_the_score_of_its_group_out_of_the_aggregate(tmp_path: Path):
    runs = [
        make_run(tmp_path / str(seed), [0.0, 10.0], overrides=[f"seed={seed}", *SHORT], frame_caps=caps)
        for seed, caps in ((1, 0), (2, 1))
    ]
    comparison = compare(runs, human_table="atari57")
    assert (of(comparison).last.n, of(comparison).last.comparable) == (2, False)
    assert comparison.aggregates == ()


def test_one_seed_with_games_cut_before_those_of_people_is_not_normalised_with_whole_ones(tmp_path: Path):
    runs = [
        make_run(
            tmp_path / str(seed),
            [300.0],
            spec="breakout_trackA.toml",
            overrides=[f"seed={seed}"],
            frame_caps=caps,
        )
        for seed, caps in ((1, 0), (2, 30))
    ]
    comparison = compare(runs, human_table="atari57")
    assert (of(comparison).last.comparable, comparison.aggregates) == (True, ())


def test_cut_games_are_counted_over_all_seeds(tmp_path: Path):
    runs = [
        make_run(tmp_path / str(seed), [1.0], overrides=[f"seed={seed}", *SHORT], frame_caps=caps, episodes=4)
        for seed, caps in ((1, 1), (2, 0), (3, 2))
    ]
    (warning,) = [each for each in compare(runs, human_table="atari57").warnings if "†" in each]
    assert "† 3 of 12 games were cut at 1,000 frames" in warning


def test_a_cut_evaluation_does_not_reach_a_person_s_score(tmp_path: Path):
    run = make_run(tmp_path / "run", [15.0, 16.0], overrides=SHORT, frame_caps=1)
    (result,) = compare([run], human_table="atari57").results
    assert result.time_to_score is not None
    assert result.time_to_score.reached == 0


@pytest.mark.fault("H07")
def test_a_cut_score_is_marked_in_the_terminal(cut: Comparison):
    assert "-6.0†" in shown(cut)
    assert "10.0†" not in shown(cut)


def test_a_cut_score_is_explained(cut: Comparison):
    (warning,) = [each for each in cut.warnings if "†" in each]
    assert warning.endswith(
        ": † 2 of 2 games were cut at 1,000 frames, as in no published score: "
        "not normalised, aggregated or compared"
    )


def test_a_cut_score_is_marked_in_json(cut: Comparison):
    first, second = json.loads(json_document(comparison_document(cut)))["groups"]
    assert (first["last"]["frame_caps"], first["last"]["comparable"]) == (2, False)
    assert (second["last"]["frame_caps"], second["last"]["comparable"]) == (0, True)


def test_a_cut_score_is_marked_in_csv(cut: Comparison):
    rows = list(csv.DictReader(comparison_csv(cut).splitlines()))
    assert [(row["frame_caps"], row["comparable"]) for row in rows] == [("2", "false"), ("0", "true")]


def test_a_cut_score_is_marked_on_the_page(cut: Comparison, tmp_path: Path):
    assert "<td>-6.0†</td>" in page(cut, folder=tmp_path)


def test_a_curve_of_cut_games_says_so_in_its_name(cut: Comparison):
    first, second = group_curves(cut.results)
    assert first.label.endswith(", n = 1 † games cut at 1,000 frames")
    assert second.label.endswith(", n = 1")


def test_games_cut_at_the_published_cap_are_marked_and_compared(tmp_path: Path):
    run = make_run(tmp_path / "run", [300.0], spec="breakout_trackB.toml", frame_caps=30)
    comparison = compare([run], human_table="atari57")
    assert "300.0†" in shown(comparison)
    assert len(comparison.aggregates) == 1
    assert any("as games of published scores were" in each for each in comparison.warnings)


def test_references_of_cut_games_are_none(cut: Comparison):
    protocol = next(each for each in cut.protocols.values() if each.max_episode_frames == 1_000)
    subject = Subject(game="pong", agent="dqn", protocol=protocol, cap_reached=True)
    assert list(references(subject, 1_000_000)) == []


def test_a_score_in_words_counts_the_games_that_were_cut():
    reasons = ("game_over", "frame_cap", "frame_cap")
    played = [EvaluationEpisode(episode_return=1.0, length_frames=9, end_reason=each) for each in reasons]
    assert str(EvaluationScore.of(played)) == "1.00 ± 0.00 over 3 episodes, 2 cut by the frame cap"
