"""Groups whose scores have different evaluation protocols are not compared with each other."""

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from atari_dqn.compare.comparison import Comparison, compare
from atari_dqn.compare.document import comparison_csv, comparison_document
from atari_dqn.compare.output.page import page
from atari_dqn.view.comparison_tables import comparison_view
from runs import make_run

DOUBLE = "toggles.double=true"
STICKY = "env.sticky_probability=0.25"
STICKY_DIFFERS = "sticky_probability 0.25, there 0"
CAP = "evaluation.max_episode_frames=108_000"


def group(folder: Path, finals: Sequence[float], *overrides: str, **options: Any) -> list[Path]:
    """Make a run for each final score, all evaluated once before at −20."""
    return [
        make_run(folder / str(seed), [-20.0, final], overrides=[f"seed={seed}", *overrides], **options)
        for seed, final in enumerate(finals, start=1)
    ]


def compared(folder: Path, *overrides: str, at_frames: int | None = None, **options: Any) -> Comparison:
    """Compare a group of Track A with one of other keys and higher scores."""
    first = group(folder / "first", [1.0, 2.0, 3.0])
    other = group(folder / "other", [11.0, 12.0, 13.0], *overrides, **options)
    return compare([*first, *other], at_frames=at_frames, human_table="atari57")


SHOWN = "a difference is shown: 10.0 [7.7, 12.3]"


def finding(comparison: Comparison) -> str:
    contrast = comparison.results[1].contrast
    assert contrast is not None
    return contrast.statement


@pytest.fixture
def sticky(tmp_path: Path) -> Comparison:
    return compared(tmp_path, STICKY)


def test_finding_says_in_which_fields_the_protocol_differs(sticky: Comparison):
    assert str(sticky.results[1].contrast) == f"not compared with the first group: {STICKY_DIFFERS}"


def test_tracks_a_and_b_are_not_compared(tmp_path: Path):
    contrast = compared(tmp_path, spec="pong_trackB.toml").results[1].contrast
    assert contrast is not None
    assert contrast.differences == (
        "track B, there A",
        STICKY_DIFFERS,
        "noop_max_frames 0, there 30",
        "epsilon 0.001, there 0.05",
    )


def test_tracks_with_one_protocol_are_not_compared(tmp_path: Path):
    aligned = [
        "env.sticky_probability=0.0", "env.noop_max_frames=30", "evaluation.epsilon=0.05",
        "env.max_episode_frames=18_000", "evaluation.max_episode_frames=18_000",
    ]  # fmt: skip
    comparison = compared(tmp_path, *aligned, spec="pong_trackB.toml")
    assert finding(comparison) == "not compared: track B, there A"
    assert comparison.improvements == ()


def test_scores_after_other_frames_are_not_compared(tmp_path: Path):
    runs = [
        make_run(tmp_path / f"{name}{seed}", returns, overrides=[f"seed={seed}", *overrides])
        for name, returns, overrides in (("short", [5.0], []), ("long", [5.0, 9.0], [DOUBLE]))
        for seed in (1, 2)
    ]
    comparison = compare(runs, human_table="atari57")
    assert finding(comparison) == "not compared: after 1,000,000 frames, there 500,000"
    assert comparison.improvements == ()
    assert finding(compare(runs, at_frames=500_000, human_table="atari57")) != finding(comparison)


def test_normalised_scores_after_other_frames_on_each_game_are_said(tmp_path: Path):
    runs = [
        make_run(tmp_path / "pong", [5.0]),
        make_run(tmp_path / "breakout", [5.0, 9.0], spec="breakout_trackA.toml"),
    ]
    unequal = "human-normalised scores are after unequal numbers of frames (pong 500,000, breakout 1,000,000)"
    assert any(unequal in warning for warning in compare(runs, human_table="atari57").warnings)


def test_seeds_without_an_interval_have_the_finding_too(tmp_path: Path):
    runs = [*group(tmp_path / "first", [1.0]), *group(tmp_path / "other", [2.0], STICKY)]
    assert finding(compare(runs, human_table="atari57")) == f"not compared: {STICKY_DIFFERS}"


def test_equal_evaluations_of_another_protocol_are_not_called_identical(tmp_path: Path):
    runs = [*group(tmp_path / "first", [1.0]), *group(tmp_path / "other", [1.0], STICKY)]
    assert finding(compare(runs, human_table="atari57")) == f"not compared: {STICKY_DIFFERS}"


def test_equal_evaluations_of_unfinished_runs_of_another_protocol_are_not_called_identical(tmp_path: Path):
    runs = [
        *group(tmp_path / "first", [-20.0], finished=False),
        *group(tmp_path / "other", [-20.0], STICKY, finished=False),
    ]
    assert compare(runs, human_table="atari57").results[1].contrast is None


@pytest.mark.parametrize("override", ["env.terminal_on_life_loss=false", "learner.max_abs_reward=2.0"])
def test_fields_of_training_do_not_prevent_a_comparison(tmp_path: Path, override: str):
    assert finding(compared(tmp_path, override)) == SHOWN


def test_another_number_of_games_does_not_prevent_a_comparison(tmp_path: Path):
    assert finding(compared(tmp_path, DOUBLE, episodes=20)) == SHOWN


def test_evaluations_during_and_at_the_end_of_training_are_compared(tmp_path: Path):
    comparison = compared(tmp_path, DOUBLE, at_frames=1_000_000, finished=False)
    assert finding(comparison) == SHOWN


@pytest.mark.parametrize(
    ("keys", "found"),
    [
        (["evaluation.epsilon=0.0"], "not compared: epsilon 0, there 0.05"),
        (["evaluation.epsilon=0.0", "toggles.noisy=true"], SHOWN),
    ],
)
def test_epsilon_may_differ_where_noisy_layers_take_its_place(tmp_path: Path, keys: list[str], found: str):
    assert finding(compared(tmp_path, *keys)) == found


def test_larger_cap_does_not_prevent_a_comparison_if_no_game_reached_the_smaller(tmp_path: Path):
    assert finding(compared(tmp_path, CAP, frame_caps=1)) == SHOWN


def test_larger_cap_prevents_a_comparison_if_a_game_reached_the_smaller(tmp_path: Path):
    first = group(tmp_path / "first", [1.0, 2.0, 3.0], CAP)
    other = group(tmp_path / "other", [11.0, 12.0, 13.0], frame_caps=1)
    assert finding(compare([*first, *other], human_table="atari57")) == (
        "not compared: max_episode_frames 18,000, there 108,000"
    )


def test_protocols_that_no_provenance_has_are_compared_by_fingerprint(tmp_path: Path):
    first, other = group(tmp_path / "first", [1.0]), group(tmp_path / "other", [2.0], STICKY)
    provenance = other[0] / "provenance.json"
    provenance.write_text(json.dumps(json.loads(provenance.read_text()) | {"protocols": {}}))
    comparison = compare([*first, *other], human_table="atari57")
    ours, theirs = (result.last.protocol_digests[0] for result in comparison.results[::-1])
    assert finding(comparison) == f"not compared: protocol {ours}, there {theirs}"


def test_there_is_no_probability_of_improvement_over_a_method_of_another_protocol(sticky: Comparison):
    assert sticky.improvements == ()


def test_methods_of_the_first_protocol_keep_their_probability_of_improvement(tmp_path: Path):
    paths = [
        *group(tmp_path / "a", [1.0, 2.0]),
        *group(tmp_path / "b", [1.0, 2.0], STICKY),
        *group(tmp_path / "c", [3.0, 4.0], DOUBLE),
    ]
    (improvement,) = compare(paths, human_table="atari57").improvements
    assert improvement.method.label == "pong_trackA double=true, sticky_probability=0.0"


def test_method_without_a_probability_of_improvement_is_named_with_the_reason(sticky: Comparison):
    assert (
        "pong_trackA sticky_probability=0.25: no probability of improvement: its scores are not comparable "
        f"with pong_trackA sticky_probability=0.0: {STICKY_DIFFERS}"
    ) in sticky.warnings


def test_json_has_the_fields_that_differ(sticky: Comparison):
    document = json.loads(json.dumps(comparison_document(sticky)))
    assert document["groups"][1]["contrast"] == {
        "to": "pong_trackA sticky_probability=0.0", "finding": "not compared", "increment": None,
        "differences": [STICKY_DIFFERS],
    }  # fmt: skip


def test_csv_has_the_fields_that_differ(sticky: Comparison):
    rows = list(csv.DictReader(comparison_csv(sticky).splitlines()))
    assert rows[1]["contrast"] == f"not compared: {STICKY_DIFFERS}"


def test_page_says_that_groups_are_not_compared(sticky: Comparison, tmp_path: Path):
    assert f"not compared with the first group: {STICKY_DIFFERS}</div>" in page(sticky, folder=tmp_path)


def test_terminal_says_that_groups_are_not_compared(sticky: Comparison):
    console = Console(width=80, file=io.StringIO())
    console.print(comparison_view(sticky))
    assert f"not compared with the first group: {STICKY_DIFFERS}" in console.file.getvalue()
