"""The present state of a run, in lines and as a row of a table."""

import json
import math
import os
import time
from pathlib import Path

import pytest
from broken_runs import make_run
from rich.console import Console

from atari_dqn.run.tailing.status import RunStatus
from atari_dqn.telemetry.events import Notice
from atari_dqn.view.run_state import status_text
from atari_dqn.view.summary import run_names, summary_table


@pytest.fixture
def status(tmp_path: Path) -> RunStatus:
    """A run whose best evaluation has games that the cap cut, and whose last has none."""
    status = RunStatus(make_run(tmp_path / "run", [12.0, 3.0], frame_caps=(1, 0)))
    status.refresh()
    return status


def test_a_best_score_of_games_that_the_cap_cut_is_marked(status: RunStatus) -> None:
    lines = status_text("run", status).plain.splitlines()
    assert [line for line in lines if line.startswith("best")] == ["best evaluation  12.0† (a maximum)"]


def test_lines_are_wrapped_at_words_below_their_text(status: RunStatus) -> None:
    text = "other programs use 1.7 of 2 cores; end them, or wait for them"
    status.notices = [Notice(kind="busy machine", step=5_144, env_frames=20_576, message=text)]
    assert status_text("run", status, columns=60).plain.splitlines()[-2:] == [
        "       20,576  busy machine: other programs use 1.7 of 2",
        "                 cores; end them, or wait for them",
    ]


def test_latest_three_notices_are_shown(status: RunStatus) -> None:
    status.notices = [
        Notice(kind="checkpoint", step=n, env_frames=4 * n, message=f"saved {n}") for n in range(1, 6)
    ]
    shown = status_text("run", status).plain.splitlines()[-4:]
    assert [line.split() for line in shown] == [
        [], ["12", "checkpoint:", "saved", "3"], ["16", "checkpoint:", "saved", "4"],
        ["20", "checkpoint:", "saved", "5"],
    ]  # fmt: skip


def test_a_best_score_in_the_table_of_runs_is_marked_for_its_own_games(status: RunStatus) -> None:
    console = Console(width=100)
    with console.capture() as captured:
        console.print(summary_table({status.run: status}, columns=100))
    (row,) = [line for line in captured.get().splitlines() if "†" in line]
    assert row.split()[-2:] == ["3.0", "12.0†"]


def test_namesakes_have_the_names_of_the_folders_above_them(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("a/seed1", "b/seed1", "b/seed2", "b/c/seed1")]
    names = run_names(paths)
    assert [names[path] for path in paths] == ["a/seed1", "b/seed1", "seed2", "c/seed1"]


def test_a_run_and_a_link_to_it_have_one_name(tmp_path: Path) -> None:
    (tmp_path / "seed1").mkdir()
    (tmp_path / "latest").symlink_to("seed1")
    paths = [tmp_path / name for name in ("seed1", "latest")]
    assert run_names(paths) == dict.fromkeys(paths, "seed1")


def test_a_run_in_the_root_has_its_whole_path_if_a_namesake_is_below_it() -> None:
    assert run_names([Path("/seed1"), Path("/a/seed1")]) == {
        Path("/seed1"): "/seed1",
        Path("/a/seed1"): "a/seed1",
    }


def printed(runs: dict[Path, RunStatus], columns: int) -> list[str]:
    """Return the lines of a table of runs, its titles first."""
    console = Console(width=columns)
    with console.capture() as captured:
        console.print(summary_table(runs, columns=columns))
    return [line for line in captured.get().splitlines() if line.strip() and "─" not in line]


def test_runs_that_differ_in_the_middle_of_a_long_name_are_shown_differently(status: RunStatus) -> None:
    names = [
        f"catch_smoke_with_a_long_name_{kind}_and_a_longer_name_catch_seed1" for kind in ("plain", "noisy")
    ]
    first, second = printed({Path(name): status for name in names}, 80)[1:3]
    assert len(first) <= 80
    assert first.split()[0] != second.split()[0]


@pytest.mark.parametrize(
    ("columns", "titles"),
    [
        (80, ["run", "state", "age", "done", "left", "f/s", "rolling", "last", "eval", "best"]),
        (50, ["run", "state", "done", "left", "last", "eval", "best"]),
        (32, ["run", "state", "best"]),
    ],
)
def test_a_narrow_table_of_runs_has_fewer_columns(status: RunStatus, columns: int, titles: list[str]) -> None:
    lines = printed({Path("catch_smoke_seed12_of_another_sweep"): status}, columns)
    assert lines[0].split() == titles
    assert lines[1].split()[-1] == "12.0†"


@pytest.fixture
def mixed(tmp_path: Path) -> RunStatus:
    """A run whose environments have different ε."""
    overrides = ["exploration.kind=spectrum", "env.num_envs=8"]
    status = RunStatus(make_run(tmp_path / "run", [12.0], overrides=overrides, training_return=7.0))
    status.refresh()
    return status


def test_rolling_return_of_a_mix_of_epsilon_is_no_score(mixed: RunStatus) -> None:
    (line,) = [line for line in status_text("run", mixed).plain.splitlines() if line.startswith("rolling")]
    assert line.split(maxsplit=2)[2] == "7.0, no score: of environments with ε 0.4 to 0.00066"


def test_rolling_return_of_a_mix_of_epsilon_is_marked_in_the_table_of_runs(mixed: RunStatus) -> None:
    console = Console(width=100)
    with console.capture() as captured:
        console.print(summary_table({mixed.run: mixed}, columns=100))
    text = captured.get()
    assert " 7.0 ε " in text
    assert "ε: training returns of environments with different ε, no score" in text


@pytest.fixture
def runs(tmp_path: Path) -> dict[Path, RunStatus]:
    """Thirty runs, of which the last two have failed, with long names and large scores."""
    found = {}
    for seed in range(30):
        path = tmp_path / f"phoenix_trackB_seed{seed:02}"
        make_run(path, [68_205.0, 1_234_567.0], frame_caps=(1, 1))
        kind = "failed" if seed >= 28 else "finished"
        record = {"kind": kind, "step": 1, "env_frames": 4, "message": "", "data": {}}
        with (path / "events.jsonl").open("a") as file:
            file.write(json.dumps(record) + "\n")
        found[path] = RunStatus(path)
        found[path].refresh()
    return found


def test_many_runs_in_a_terminal_are_cut_to_its_height_with_the_failed_ones_first(
    runs: dict[Path, RunStatus],
) -> None:
    console = Console(width=80)
    with console.capture() as captured:
        console.print(summary_table(runs, columns=80, lines=12))
    lines = [line.strip() for line in captured.get().splitlines() if line.strip()]
    assert len(captured.get().splitlines()) < 12
    assert [line.split()[0] for line in lines[2:4]] == ["phoenix_trackB_seed28", "phoenix_trackB_seed29"]
    assert lines[-1] == "and 24 more"


def test_names_and_scores_in_the_table_of_runs_are_whole_at_80_columns(runs: dict[Path, RunStatus]) -> None:
    runs = dict(list(runs.items())[-1:])
    console = Console(width=80)
    with console.capture() as captured:
        console.print(summary_table(runs, columns=80))
    line = captured.get().splitlines()[3]
    assert line.lstrip().startswith("phoenix_trackB_seed29 ")
    assert line.split()[-2:] == ["1.23M†", "1.23M†"]


@pytest.fixture
def running(tmp_path: Path) -> RunStatus:
    """A run that has trained 1M of 50M frames and learns at 1,000 frames a second."""
    status = RunStatus(make_run(tmp_path / "run", [12.0, 3.0], finished=False))
    status.refresh()
    status.latest["update_log"] = {**status.latest["update_log"], "updates": 1_000}
    status.latest["throughput_log"] = {**status.latest["throughput_log"], "frames_per_second": 1_000.0}
    return status


def test_frames_of_a_run_that_goes_on_have_its_speed_and_the_time_left(running: RunStatus) -> None:
    (line,) = [line for line in status_text("run", running).plain.splitlines() if line.startswith("frames")]
    assert line.split(maxsplit=1)[1] == "1,000,000 of 50,000,000 (2.0%), 1,000 frames/s, 13h 36m left"


def test_a_run_that_goes_on_has_its_time_left_and_speed_in_the_table_of_runs(running: RunStatus) -> None:
    _, line = printed({running.run: running}, 100)
    assert line.split()[1:2] + line.split()[3:7] == ["running", "2%", "13h", "36m", "1k"]


def test_a_run_that_does_not_go_on_has_its_age_and_no_time_left_in_the_table_of_runs(
    running: RunStatus,
) -> None:
    then = time.time() - 3 * 3_600 - 5 * 60
    for path in running.run.iterdir():
        os.utime(path, (then, then))
    _, line = printed({running.run: running}, 100)
    assert line.split()[1:5] == ["silent", "3h", "2%", "-"]


def test_last_evaluation_is_its_mean_and_the_deviation_of_its_games(status: RunStatus) -> None:
    status.latest["eval_log"] = {**status.latest["eval_log"], "std_return": 1.5}
    lines = status_text("run", status).plain.splitlines()
    (line,) = [line for line in lines if line.startswith("last evaluation")]
    assert line.split(maxsplit=2)[2].startswith("3.0 ± 1.5, final, 30 episodes, at 1,000,000 frames [")


def test_last_evaluation_of_one_game_has_no_deviation(tmp_path: Path) -> None:
    status = RunStatus(make_run(tmp_path / "run", [3.0], episodes=1))
    status.refresh()
    status.latest["eval_log"] = {**status.latest["eval_log"], "std_return": math.nan}
    (line,) = [line for line in status_text("run", status).plain.splitlines() if line.startswith("last")]
    assert line.startswith("last evaluation  3.0, final, 1 episode, at 500,000 frames [")
