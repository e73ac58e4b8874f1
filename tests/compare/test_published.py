"""The published columns of Atari 100k are compared with the score of a group."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from atari_dqn.compare.atari100k_scores import Atari100kScore
from atari_dqn.compare.comparison import Comparison, compare
from atari_dqn.compare.document import comparison_csv, comparison_document
from atari_dqn.compare.output.page import page
from atari_dqn.compare.output.plot import figure_of
from atari_dqn.view.comparison_tables import comparison_view
from runs import make_run

AGENTS = [
    "der_vanhasselt2019", "der_agarwal2021", "drq_eps_agarwal2021", "otrainbow_kielak2020",
    "curl_agarwal2021", "spr_agarwal2021",
]  # fmt: skip
DER = "atari100k_der.toml"


def compared(root: Path, finals: Sequence[float], **options: Any) -> Comparison:
    """Compare seeds of a spec, evaluated once, with 100 games, at the end."""
    options = {"spec": DER, "period_frames": 400_000, "episodes": 100} | options
    overrides = options.pop("overrides", [])
    paths = [
        make_run(root / f"s{seed}", [final], overrides=[f"seed={seed}", *overrides], **options)
        for seed, final in enumerate(finals, start=1)
    ]
    return compare(paths, human_table="atari57")


def columns(comparison: Comparison) -> dict[str, Atari100kScore]:
    (result,) = comparison.results
    return {each.column.agent: each for each in result.atari100k}


@pytest.fixture(scope="module")
def pong(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    return compared(tmp_path_factory.mktemp("runs"), [-20.0, -15.0, -10.0])


def test_columns_have_the_published_figures(pong: Comparison):
    found = columns(pong)
    assert list(found) == AGENTS
    # van Hasselt et al. (2019), as two papers print it, and random play at −20.7 of a person's 14.6
    assert found["der_vanhasselt2019"].figure.mean == -19.3
    assert found["der_vanhasselt2019"].normalised == pytest.approx(1.4 / 35.3)


def test_each_column_says_how_it_is_sourced(pong: Comparison):
    assert [each.column.sourced for each in columns(pong).values()] == [
        "printed", "recalled", "run by run", "printed", "run by run", "run by run",
    ]  # fmt: skip


def test_figure_in_our_interval_is_inside_and_another_outside(pong: Comparison):
    # seeds of −20, −15 and −10: the interval lies within them
    found = {name: each.inside for name, each in columns(pong).items()}
    assert (found["der_vanhasselt2019"], found["curl_agarwal2021"]) == (True, True)
    assert (found["drq_eps_agarwal2021"], found["otrainbow_kielak2020"]) == (False, False)


def test_no_verdict_depends_on_a_recalled_figure(tmp_path: Path):
    recalled = columns(compared(tmp_path, [-30.0, 30.0]))["der_agarwal2021"]
    assert recalled.inside is None


def test_one_seed_has_no_interval_to_be_inside_of(tmp_path: Path):
    assert {each.inside for each in columns(compared(tmp_path, [-19.3])).values()} == {None}


@pytest.mark.parametrize(
    "options",
    [
        {"period_frames": 500_000},
        {"overrides": ["env.sticky_probability=0.25"]},
        {"spec": DER, "overrides": ["game=adventure"]},
    ],
    ids=["another budget", "another protocol", "a game outside of the 26"],
)
def test_columns_are_shown_with_scores_of_their_own_budget_protocol_and_games_only(
    tmp_path: Path, options: dict[str, Any]
):
    assert columns(compared(tmp_path, [1.0, 2.0], **options)) == {}


def test_columns_are_shown_also_if_the_last_iteration_ends_after_the_budget(tmp_path: Path):
    late = compared(tmp_path, [1.0, 2.0], overrides=["env.num_envs=8"], late_frames=12)
    assert list(columns(late)) == AGENTS


def test_view_marks_each_column_within_80_columns_of_text(pong: Comparison):
    console = Console(width=80, file=io.StringIO())
    console.print(comparison_view(pong))
    lines = console.file.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    shown = {line.strip()[:34].strip(): line.split()[-2:] for line in lines if " 20" in line}
    assert shown["DER, van Hasselt et al. 2019"] == ["printed", "inside"]
    assert shown["SPR, Agarwal et al. 2021"] == ["run", "outside"]
    assert shown["DER (Dopamine), Agarwal et al. 202"][-1] == "recalled"


def test_json_has_the_columns_with_their_sourcing(pong: Comparison):
    (group,) = comparison_document(pong)["groups"]
    assert [each["agent"] for each in group["atari_100k"]] == AGENTS
    assert group["atari_100k"][1]["sourced"] == "recalled"
    assert group["atari_100k"][1]["in_our_interval"] is None
    assert group["atari_100k"][2]["runs"] == 100


def test_csv_has_a_cell_for_each_column_and_names_the_recalled_one(pong: Comparison):
    (row,) = csv.DictReader(comparison_csv(pong).splitlines())
    assert row["atari_100k_der_vanhasselt2019"] == "-19.3"
    assert row["atari_100k_der_agarwal2021_recalled"] != ""


def test_page_has_the_table_and_its_sources(pong: Comparison, tmp_path: Path):
    text = page(pong, folder=tmp_path)
    assert "<td>DrQ(ε), Agarwal et al. 2021</td>" in text
    assert "<td>recalled</td>" in text
    assert "From memory." in text


def test_plot_marks_each_column_at_its_budget_and_leaves_the_recalled_one_hollow(pong: Comparison):
    (axes,) = figure_of(pong).axes
    marks = {line.get_label(): line for line in axes.lines if "et al." in str(line.get_label())}
    assert len(marks) == 5
    assert {tuple(line.get_xdata()) for line in marks.values()} == {(400_000,)}
    hollow = [label for label, line in marks.items() if line.get_markerfacecolor() == "none"]
    assert hollow == ["DER (Dopamine), Agarwal et al. 2021 (recalled)"]


def test_plot_leaves_out_no_column_where_it_has_fewer_marks(
    pong: Comparison, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("atari_dqn.compare.output.plot._MARKERS", ("s", "o"))
    (axes,) = figure_of(pong).axes
    assert sum("et al." in str(line.get_label()) for line in axes.lines) == 5


def test_seeds_of_two_versions_of_the_emulator_are_compared_with_published_scores(tmp_path: Path):
    paths = [
        make_run(tmp_path / version, [-20.0, 1.0], overrides=[f"seed={seed}"], ale_version=version)
        for seed, version in enumerate(["0.12.1", "0.13.0"], start=1)
    ]
    (result,) = compare(paths, human_table="atari57").results
    assert [(each.n, each.verdict) for each in result.references] == [(2, "above")]


def test_score_that_is_late_by_less_than_an_iteration_is_compared_at_the_frames_when_it_was_due(
    tmp_path: Path,
):
    paths = [
        make_run(
            tmp_path / str(seed),
            [20.0 + seed],
            overrides=[f"seed={seed}", "env.num_envs=8"],
            period_frames=200_000_000,
            late_frames=12,
        )
        for seed in (1, 2)
    ]
    first = compare(paths, human_table="atari57").results[0].references[0]
    assert (first.reference.study.name, first.verdict) == ("nnabla_dqn", "above")
