"""What the live page and the captions of videos say."""

import os
import time
from pathlib import Path

from broken_runs import make_run

from atari_dqn.dashboard.library import Library
from atari_dqn.run.directory import RunDirectory
from atari_dqn.train.stopwatch import PARTS

# The pages are imported by their tests: NiceGUI takes each worker a second.


def test_a_best_score_of_games_that_the_cap_cut_is_marked(tmp_path: Path) -> None:
    from atari_dqn.dashboard.pages.live import measured_text

    make_run(tmp_path / "run", [12.0, 3.0], frame_caps=(1, 0))
    (run,) = Library(tmp_path).runs()
    assert run.status is not None
    assert measured_text(run.status).endswith("last evaluation 3.0 · best 12.0†")


def test_a_caption_marks_a_score_of_games_that_the_cap_cut(tmp_path: Path) -> None:
    from atari_dqn.dashboard.pages.videos import caption

    make_run(tmp_path / "run", [12.0, 3.0], frame_caps=(1, 0))
    (run,) = Library(tmp_path).runs()
    said = "500,000 frames: evaluation 12.0† ± 0.0 over 30 games"
    assert caption(run, run.path / "videos" / "step_000125000.mp4") == said


def test_a_caption_of_an_evaluation_of_one_game_has_no_deviation(tmp_path: Path) -> None:
    from atari_dqn.dashboard.pages.videos import caption

    make_run(tmp_path / "run", [12.0], episodes=1)
    (run,) = Library(tmp_path).runs()
    said = "500,000 frames: evaluation 12.0 over 1 game"
    assert caption(run, run.path / "videos" / "step_000125000.mp4") == said


def test_rolling_return_of_a_mix_of_epsilon_is_no_score(tmp_path: Path) -> None:
    from atari_dqn.dashboard.pages.live import measured_text

    overrides = ["exploration.kind=spectrum", "env.num_envs=8"]
    make_run(tmp_path / "run", [12.0], overrides=overrides, training_return=7.0)
    (run,) = Library(tmp_path).runs()
    assert run.status is not None
    text = measured_text(run.status)
    assert text.startswith("rolling return 7.0 (no score: of environments with ε 0.4 to 0.00066) · ")
    assert " · mean ε " in text


def test_shares_of_time_are_those_of_all_parts() -> None:
    from atari_dqn.dashboard.pages.live import PARTS as SHOWN

    assert {*SHOWN} == {*PARTS, "other"}


def test_a_run_in_a_long_evaluation_is_in_progress(tmp_path: Path) -> None:
    from atari_dqn.dashboard.pages.live import in_progress

    make_run(tmp_path / "run", [12.0])
    (run,) = Library(tmp_path).runs()
    an_hour_ago = time.time() - 3_600
    for path in run.path.iterdir():
        if path.is_file():
            os.utime(path, (an_hour_ago, an_hour_ago))
    (run,) = Library(tmp_path).runs()
    assert in_progress([run]) == []
    with RunDirectory.open(run.path).locked():
        (running,) = Library(tmp_path).runs()
        assert in_progress([running]) == [running]


def test_run_that_has_trained_has_its_final_evaluation_left(tmp_path: Path) -> None:
    from atari_dqn.dashboard.pages.live import progress_text

    path = make_run(tmp_path / "run", [12.0, 3.0], overrides=["training.total_frames=1_000_000"])
    with RunDirectory.open(path).locked():
        (run,) = Library(tmp_path).runs()
        assert run.status is not None
        assert run.status.state == "running"
        assert progress_text(run.status).endswith(", then the final evaluation")


def test_an_import_is_no_run_in_progress(tmp_path: Path) -> None:
    from atari_dqn.dashboard.pages.live import in_progress

    (make_run(tmp_path / "imported", [12.0]) / "archive.json").touch()
    make_run(tmp_path / "run", [12.0])
    assert [run.name for run in in_progress(Library(tmp_path).runs())] == ["run"]


def test_an_import_that_was_trained_beyond_its_spec_says_both_numbers(tmp_path: Path) -> None:
    from atari_dqn.dashboard.pages.live import progress_text
    from atari_dqn.dashboard.pages.overview import row_of

    overrides = ["training.total_frames=500_000"]
    (make_run(tmp_path / "imported", [12.0, 3.0], overrides=overrides) / "archive.json").touch()
    (run,) = Library(tmp_path).runs()
    assert run.status is not None
    assert progress_text(run.status) == "1,000,000 frames (500,000 by its spec), 0 frames/s"
    assert row_of(run)["frames"] == "1M of 1M"
