import csv
import io
import json
import math
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from atari_dqn.cli.compare import parse_frames
from atari_dqn.compare.comparison import Comparison, compare
from atari_dqn.compare.document import comparison_csv, comparison_document
from atari_dqn.compare.output.learning_curves import group_curves, published_curves
from atari_dqn.compare.output.page import page
from atari_dqn.compare.output.plot import draw, figure_of
from atari_dqn.errors import UserError
from atari_dqn.files.atomic import json_document
from atari_dqn.view.comparison_tables import comparison_view
from runs import RUNS, make_run

Dqn = Callable[..., tuple[int, str]]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    root = tmp_path_factory.mktemp("runs")
    paths = [
        make_run(root / f"{name}{seed}", [-20.0, 5.0, 10.0 + seed], overrides=[f"seed={seed}", *overrides])
        for name, overrides in (("plain", ()), ("double", ("toggles.double=true",)))
        for seed in (1, 2, 3)
    ]
    video = paths[0] / "checkpoints" / "step_000500000" / "video.mp4"
    video.parent.mkdir()
    video.touch()
    (paths[1] / "web").mkdir()
    (paths[1] / "web" / "index.html").touch()
    return paths


@pytest.fixture(scope="module")
def comparison(runs: list[Path]) -> Comparison:
    return compare(runs, human_table="atari57")


def test_no_line_is_wider_than_80_columns(comparison: Comparison):
    console = Console(width=80, file=io.StringIO())
    console.print(comparison_view(comparison))
    text = console.file.getvalue()
    assert max(map(len, text.splitlines())) <= 80
    for shown in ("pong_trackA double=true", "[11.0, 13.0]", "n = 3", "protocol", "above"):
        assert shown in text


def test_intervals_of_large_negative_scores_do_not_touch(tmp_path: Path):
    runs = [
        make_run(tmp_path / str(seed), [-12_345.0 * seed], overrides=["game=skiing", f"seed={seed}"])
        for seed in (1, 2)
    ]
    console = Console(width=80, file=io.StringIO())
    console.print(comparison_view(compare(runs, human_table="atari57")))
    assert "[-24.7k, -12.3k] [-24.7k, -12.3k] [" in console.file.getvalue()


def test_page_names_the_frames_between_which_a_published_score_is_interpolated(
    comparison: Comparison, tmp_path: Path
):
    assert "dqn at 1.5M, between 1M and 2M" in page(comparison, folder=tmp_path)


def test_json_holds_scores_protocols_and_licences(comparison: Comparison):
    document = json.loads(json_document(comparison_document(comparison)))
    group = document["groups"][0]
    assert group["last"]["mean"]["value"] == 12.0
    assert group["last"]["protocols"][0] in document["protocols"]
    assert group["references"][0]["study"]["licence"] == "Apache-2.0"
    assert [run["seed"] for run in group["runs"]] == [1, 2, 3]


def test_csv_has_a_row_for_each_group(comparison: Comparison):
    rows = list(csv.DictReader(comparison_csv(comparison).splitlines()))
    assert [row["label"] for row in rows] == ["pong_trackA double=false", "pong_trackA double=true"]
    assert (rows[0]["mean"], rows[0]["n"]) == ("12.0", "3")


def test_csv_has_the_best_and_the_time_to_a_score(tmp_path: Path):
    runs = [
        make_run(tmp_path / str(seed), [-20.0, 15.0, final], overrides=[f"seed={seed}"])
        for seed, final in ((1, 1.0), (2, 16.0), (3, 19.0))
    ]
    (row,) = csv.DictReader(comparison_csv(compare(runs, human_table="atari57", to_score=16.0)).splitlines())
    assert (row["mean"], row["best_mean"]) == ("12.0", str((15.0 + 16.0 + 19.0) / 3))
    names = ("to_score", "reached", "median_frames_to_score", "median_hours_to_score")
    assert [row[name] for name in names] == ["16.0", "2", "1500000.0", "3.0"]


def test_json_has_the_best_of_each_seed_and_its_last(tmp_path: Path):
    run = make_run(tmp_path / "run", [-20.0, 15.0, 1.0])
    (group,) = comparison_document(compare([run], human_table="atari57"))["groups"]
    assert (group["last"]["mean"]["value"], group["best"]["mean"]["value"]) == (1.0, 15.0)


@pytest.mark.parametrize(("name", "magic"), [("a.png", b"\x89PNG"), ("a.svg", b"<?xml")])
def test_plot_is_the_picture_that_its_ending_says_and_repeats(
    comparison: Comparison, tmp_path: Path, name: str, magic: bytes
):
    first, second = tmp_path / f"1{name}", tmp_path / f"2{name}"
    draw(comparison, first)
    draw(comparison, second)
    assert first.read_bytes().startswith(magic)
    assert first.read_bytes() == second.read_bytes()


def test_plot_names_what_it_draws_where_that_covers_nothing(comparison: Comparison):
    figure = figure_of(comparison)
    figure.draw_without_rendering()
    (axes,) = figure.axes
    drawn = axes.get_legend().get_window_extent()
    assert drawn.y1 < axes.get_window_extent().y0
    assert drawn.y0 >= 0


def test_plot_does_not_name_a_group_that_has_nothing_to_draw(runs: list[Path], tmp_path: Path):
    begun = make_run(tmp_path / "begun", [], overrides=["learner.loss=mse"], finished=False)
    (axes,) = figure_of(compare([*runs, begun], human_table="atari57")).axes
    assert not any("mse" in text.get_text() for text in axes.get_legend().get_texts())


@pytest.mark.parametrize("name", ["_mine", "cost$x_{$y"])
def test_plot_shows_the_name_of_a_spec_as_it_is(tmp_path: Path, name: str):
    spec = tmp_path / f"{name}.toml"
    shutil.copyfile(RUNS / "pong_trackA.toml", spec)
    run = make_run(tmp_path / "run", [1.0, 2.0], spec=str(spec))
    (axes,) = figure_of(compare([run], human_table="atari57")).axes
    axes.figure.draw_without_rendering()
    shown = [text.get_text().replace(r"\$", "$").strip() for text in axes.get_legend().get_texts()]
    assert any(label.startswith(name) for label in shown)


def test_page_needs_nothing_from_a_network(comparison: Comparison, runs: list[Path]):
    text = page(comparison, folder=runs[0].parent)
    assert text.count("<script") == 2
    assert 'src="http' not in text
    assert 'href="http' not in text
    assert "@import" not in text


def test_page_links_videos_from_where_it_lies(comparison: Comparison, runs: list[Path]):
    text = page(comparison, folder=runs[0].parent)
    assert 'src="plain1/checkpoints/step_000500000/video.mp4"' in text


def test_page_links_the_page_of_a_run_that_has_one(comparison: Comparison, runs: list[Path]):
    text = page(comparison, folder=runs[0].parent)
    assert text.count("/web/index.html") == 1
    assert '<a href="plain2/web/index.html">' in text


def test_page_s_data_cannot_end_its_script(tmp_path: Path):
    run = make_run(tmp_path / "run", [1.0], overrides=["toggles.double=true"])
    provenance = run / "provenance.json"
    provenance.write_text(provenance.read_text().replace("pong_trackA", "</script><b>"))
    assert "</script><b>" not in page(compare([run], human_table="atari57"), folder=tmp_path)


@pytest.mark.parametrize(
    ("text", "frames"),
    [("50M", 50_000_000), ("1_000", 1_000), ("820k", 820_000), ("1.5m", 1_500_000), ("1e6", 1_000_000)],
)
def test_frames_are_read_in_the_usual_ways(text: str, frames: int):
    assert parse_frames(text) == frames


@pytest.mark.parametrize("text", ["", "many", "-5", "5G", "2,4M"])
def test_other_words_are_no_frames(text: str):
    with pytest.raises(UserError, match="expected a number of frames"):
        parse_frames(text)


def test_command_writes_every_output(dqn: Dqn, runs: list[Path], tmp_path: Path):
    outputs = [tmp_path / f"out.{ending}" for ending in ("json", "csv", "svg", "html")]
    options = zip(("--json", "--csv", "--plot", "--html"), outputs, strict=True)
    assert dqn("compare", *runs, *(word for option in options for word in option)) == (0, "")
    assert all(path.stat().st_size > 100 for path in outputs)


def test_output_that_exists_is_never_overwritten(dqn: Dqn, runs: list[Path]):
    table = runs[0] / "eval_log.csv"
    before = table.read_bytes()
    code, errors = dqn("compare", *runs, "--csv", table)
    assert (code, table.read_bytes()) == (2, before)
    assert "is never overwritten" in errors


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--plot", "curves.gif"), "expected .png or .svg"),
        (("--html", "/nowhere/page.html"), "the folder /nowhere does not exist"),
        (("--at", "soon"), "expected a number of frames"),
        (("--at", "0"), "--at: found '0', expected a number of frames"),
        (("--at", "900M"), "no run has reached 900,000,000 frames; the furthest is at "),
        (("--human-table", "atari75"), "expected atari57 or nature2015"),
        (("--to-score", "nan"), "expected a finite number"),
    ],
)
def test_wrong_options_are_one_message(dqn: Dqn, runs: list[Path], arguments: tuple[str, ...], message: str):
    code, errors = dqn("compare", *runs, *arguments)
    assert (code, errors.count("\n")) == (2, 1)
    assert message in errors


def test_the_frame_of_a_comparison_is_the_one_that_the_command_names(
    dqn: Dqn, runs: list[Path], tmp_path: Path
):
    assert dqn("compare", *runs, "--at", "1M", "--csv", tmp_path / "found.csv")[0] == 0
    with (tmp_path / "found.csv").open() as file:
        assert {(row["env_frames"], row["mean"]) for row in csv.DictReader(file)} == {("1000000", "5.0")}


@pytest.mark.parametrize(("table", "human"), [("atari57", "14.6"), ("nature2015", "9.3")])
def test_the_human_score_to_reach_is_of_the_table_that_the_command_names(
    dqn: Dqn, runs: list[Path], tmp_path: Path, table: str, human: str
):
    assert dqn("compare", runs[0], "--human-table", table, "--csv", tmp_path / "found.csv")[0] == 0
    with (tmp_path / "found.csv").open() as file:
        assert [row["to_score"] for row in csv.DictReader(file)] == [human]


def test_the_score_to_reach_may_be_written_with_a_unit(dqn: Dqn, runs: list[Path], tmp_path: Path):
    assert dqn("compare", *runs, "--to-score", "0.02k", "--csv", tmp_path / "found.csv")[0] == 0
    with (tmp_path / "found.csv").open() as file:
        assert {row["to_score"] for row in csv.DictReader(file)} == {"20.0"}


def test_a_directory_that_is_no_run_is_one_message(dqn: Dqn, tmp_path: Path):
    code, errors = dqn("compare", tmp_path)
    assert (code, errors.count("\n"), "is not a run directory" in errors) == (2, 1, True)


def test_a_damaged_table_is_one_message(dqn: Dqn, tmp_path: Path):
    run = make_run(tmp_path / "run", [1.0])
    (run / "eval_log.csv").unlink()
    code, errors = dqn("compare", run)
    assert (code, errors.count("\n"), "eval_log.csv: is missing" in errors) == (4, 1, True)


def test_plot_without_matplotlib_names_the_extra(
    dqn: Dqn, runs: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    code, errors = dqn("compare", *runs, "--plot", tmp_path / "a.png")
    assert (code, "pip install 'atari-dqn[plot]'" in errors) == (2, True)


def test_comparing_imports_no_torch():
    program = "import sys, atari_dqn.cli.compare; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_curve_is_the_mean_where_every_seed_was_evaluated(tmp_path: Path):
    returns = {1: [0.0, 2.0, 9.0], 2: [2.0, math.nan, 11.0], 3: [4.0, 6.0], 4: []}
    for seed, values in returns.items():
        make_run(tmp_path / str(seed), values, overrides=[f"seed={seed}"], finished=False)
    (curve,) = group_curves(compare(sorted(tmp_path.iterdir()), human_table="atari57").results)
    assert (curve.frames.tolist(), curve.mean.tolist()) == ([500_000], [2.0])
    assert curve.seeds[1][1].tolist() == [0.0, 2.0, 9.0]
    assert curve.label == "pong_trackA A, n = 3"


def test_curve_of_several_environments_has_a_mean_where_seeds_are_a_few_frames_apart(tmp_path: Path):
    for seed, late in ((1, 12), (2, 0)):
        overrides = [f"seed={seed}", "env.num_envs=8"]
        make_run(tmp_path / str(seed), [float(seed), 5.0], overrides=overrides, late_frames=late)
    (curve,) = group_curves(compare(sorted(tmp_path.iterdir()), human_table="atari57").results)
    assert (curve.frames.tolist(), curve.mean.tolist()) == ([500_012, 1_000_012], [1.5, 5.0])


@pytest.mark.parametrize(("late", "shared"), [((0, 28), [500_000, 1_000_000]), ((0, 32), []), ((32, 0), [])])
def test_curve_has_no_mean_where_seeds_are_a_whole_iteration_apart(
    tmp_path: Path, late: tuple[int, int], shared: list[int]
):
    for seed, frames in enumerate(late, start=1):
        overrides = [f"seed={seed}", "env.num_envs=8"]
        make_run(tmp_path / str(seed), [1.0, 5.0], overrides=overrides, late_frames=frames)
    (curve,) = group_curves(compare(sorted(tmp_path.iterdir()), human_table="atari57").results)
    assert curve.frames.tolist() == shared


def test_band_of_a_curve_is_the_interval_of_its_mean(comparison: Comparison):
    curve = group_curves(comparison.results)[0]
    interval = comparison.results[0].last.estimates["mean"].interval
    assert (curve.low[-1], curve.high[-1]) == pytest.approx((interval.low, interval.high))


def test_published_curve_ends_with_the_runs_and_its_band_is_of_its_seeds(tmp_path: Path):
    run = make_run(tmp_path / "run", [-20.0, -19.0, -18.0])
    drawn = published_curves(compare([run], human_table="atari57").results)
    (curve,) = [each for each in drawn if each.label.startswith("nnabla-rl, DQN and Double DQN: dqn, n = 3")]
    assert curve.frames.tolist() == [1_000_000, 1_500_000]
    assert curve.mean == pytest.approx([-20.529, -18.94])
    assert (curve.low[0], curve.high[0]) == (-20.826, -20.377)


@pytest.mark.parametrize(("evaluations", "frames"), [((2, 2), [1_000_000]), ((2, 3), [1_000_000, 1_500_000])])
def test_published_curve_ends_with_the_longest_run(
    tmp_path: Path, evaluations: tuple[int, int], frames: list[int]
):
    for seed, number in enumerate(evaluations, start=1):
        make_run(tmp_path / str(seed), [-20.0] * number, overrides=[f"seed={seed}"])
    drawn = published_curves(compare(sorted(tmp_path.iterdir()), human_table="atari57").results)
    (curve,) = [each for each in drawn if each.label.startswith("nnabla-rl, DQN and Double DQN: dqn, n = 3")]
    assert curve.frames.tolist() == frames


def test_seeds_that_reached_a_score_are_counted_in_the_terminal_and_on_the_page(tmp_path: Path):
    finals = {1: 3.0, 2: -20.0, 3: -21.0}
    paths = [
        make_run(tmp_path / str(seed), [last], overrides=[f"seed={seed}"]) for seed, last in finals.items()
    ]
    comparison = compare(paths, human_table="atari57", to_score=0.0)
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(comparison_view(comparison))
    assert "not yet: reached by 1 of 3 seeds" in " ".join(console.export_text().split())
    assert "<td>1 of 3</td>" in page(comparison, folder=tmp_path)


def test_csv_has_no_cell_for_hours_that_are_not_known(tmp_path: Path):
    run = make_run(tmp_path / "run", [-20.0, 5.0, 10.0])
    times = (run / "throughput_log.csv").read_text().splitlines(keepends=True)
    (run / "throughput_log.csv").write_text(times[0] + times[-1])
    (row,) = csv.DictReader(comparison_csv(compare([run], human_table="atari57", to_score=0.0)).splitlines())
    assert (row["median_frames_to_score"], row["median_hours_to_score"]) == ("1000000.0", "")
