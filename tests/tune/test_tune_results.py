"""The outcome of a tune: ranks, the table, the CSV, the best specs, the plot."""

import csv
import math
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from tiny import tiny_spec
from tuning import TINY, begun, command

from atari_dqn.files.atomic import write_json_atomically
from atari_dqn.run.sweep.failures import Failure
from atari_dqn.run.sweep.folder import SweepFolder
from atari_dqn.run.sweep.record import Member
from atari_dqn.scale.tuning.folder import TuneFolder
from atari_dqn.scale.tuning.plot import encoded_plot, figure_of
from atari_dqn.scale.tuning.progress import TuneProgress
from atari_dqn.scale.tuning.ranking import Standing, protocol_lines, read_standing
from atari_dqn.scale.tuning.results import table_csv, write_results
from atari_dqn.scale.tuning.study import TrialLog
from atari_dqn.scale.tuning.table import status_lines, totals_line, trial_line
from atari_dqn.scale.tuning.tune import Budget
from atari_dqn.spec.loader import load_spec
from atari_dqn.spec.protocol import evaluation_protocol

TEXT = (
    f'spec = "{TINY}"\nseeds = 2\n[space]\noptimizer.learning_rate = {{ log = [1e-5, 1e-1] }}\n'
    "toggles.prioritized = { choice = [true, false] }\n"
    "replay.alpha = { uniform = [0.1, 0.9], when = { toggles.prioritized = true } }\n"
    "[pruning]\nstartup_trials = 4\n[budget]\ntrials = 20\n"
)


ONE_VALUE = f'spec = "{TINY}"\n[space]\ntoggles.n_step = {{ choice = [2, 3] }}\n[budget]\ntrials = 9\n'


def score(member: Member, frames: int) -> float:
    """Return a score that depends on the learning rate, and a little on the toggle."""
    rate = math.log10(float(member.values["optimizer.learning_rate"]))
    return 10 - (rate + 3) ** 2 + 0.01 * bool(member.values["toggles.prioritized"]) + 0 * frames


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> tuple[Standing, TuneFolder, TrialLog]:
    record, folder = begun(tmp_path_factory.mktemp("tuned"), TEXT)
    command(record, folder, score)
    log = TrialLog(folder, record.tune, writable=False)
    return read_standing(record, folder, log), folder, log


Tuned = tuple[Standing, TuneFolder, TrialLog]


def test_trials_are_ranked_by_the_direction_of_the_objective(tuned: Tuned, tmp_path: Path):
    values = [trial.value for trial in tuned[0].ranked]
    assert values == sorted(values, reverse=True)
    record, folder = begun(tmp_path, TEXT + "[objective]\ndirection = 'minimize'\n")
    command(record, folder, lambda member, frames: -score(member, frames))
    found = read_standing(record, folder, TrialLog(folder, record.tune, writable=False))
    assert [trial.settings for trial in found.ranked] == [trial.settings for trial in tuned[0].ranked]


def test_the_key_that_matters_is_the_most_important(tuned: Tuned):
    importance = tuned[2].importance()
    assert max(importance, key=lambda key: importance[key]) == "optimizer.learning_rate"
    assert sum(importance.values()) == pytest.approx(1.0)


@pytest.mark.parametrize("columns", [80, 110])
def test_the_lines_of_trials_fit_the_terminal(tuned: Tuned, columns: int):
    lines = list(status_lines(tuned[0], [], {}, columns))
    table = lines[: lines.index("")]
    assert len(table) == 21
    assert max(map(len, table)) <= columns
    assert table[1].split()[:3] == ["1", str(tuned[0].ranked[0].number), "complete"]


@pytest.mark.parametrize(("columns", "rows"), [(80, 24), (60, 16)])
def test_a_screen_fits_the_terminal(tuned: Tuned, columns: int, rows: int):
    found, folder, _ = tuned
    running = ["trial0001_catch_seed1", "trial0001_catch_seed2"]
    screen = TuneProgress(lambda: found, lambda: running, folder.runs).screen(columns, rows)
    assert len(screen) < rows
    assert max(map(len, screen)) <= columns


def test_a_run_at_work_has_its_share_of_the_objectives_frames_and_the_time_left(tuned: Tuned, tmp_path: Path):
    found, name = tuned[0], "trial0001_catch_seed1"
    (tmp_path / name).mkdir()
    (tmp_path / name / "throughput_log.csv").write_text("env_frames,frames_per_second\n300,7.5\n")
    screen = TuneProgress(lambda: found, lambda: [name], SweepFolder(tmp_path)).screen(80, 24)
    assert [line for line in screen if line.startswith(name)] == [
        f"{name}: 300 of 1.2k frames, 25%, 8 frames/s, 2m 00s left"
    ]


def test_a_trial_without_an_objective_is_shown_with_its_latest_score_in_brackets(tuned: Tuned):
    found = tuned[0]
    trial = replace(found.trials[0], number=99, state="pruned", value=math.nan, steps={0: 1.5, 1: 2.5})
    line = trial_line(trial, replace(found, first=(*range(100),)), 80)
    assert line.split()[:3] == ["99", "pruned", "(2.500)"]


def test_the_budget_of_one_trial_is_in_the_singular(tuned: Tuned):
    record = tuned[0].record
    tune = replace(record.tune, budget=Budget(trials=1, hours=1.5))
    line = totals_line(replace(tuned[0], record=replace(record, tune=tune)))
    assert "of a budget of 1 trial and 1.5 hours; " in line


def test_a_failure_is_shown_once_for_trials_that_share_runs(tmp_path: Path):
    record, folder = begun(tmp_path, ONE_VALUE)
    failure = Failure(kind="halted", reason="halted by the gate loss", exit_code=3)
    command(record, folder, score, trial0000_catch_seed1=failure)
    found = read_standing(record, folder, TrialLog(folder, record.tune, writable=False))
    assert [trial.state for trial in found.trials].count("failed") > 1
    reasons = [line for line in status_lines(found, [], {}, 80) if "failed: " in line]
    assert reasons == ["trial 0 failed: trial0000_catch_seed1: halted by the gate loss"]
    news = TuneProgress(lambda: replace(found, trials=()), list, folder.runs)
    news._read = lambda: found
    assert next(iter(news.news())) == "trial 0: failed; the reason is shown at the end and by --status"


def test_the_files_of_the_outcome_hold_every_trial_and_the_best_specs(tuned: Tuned):
    found, folder, log = tuned
    write_results(found, folder, log.importance())
    rows = list(csv.DictReader(folder.table.read_text().splitlines()))
    assert [row["state"] for row in rows] == [trial.state for trial in found.trials]
    without = [row for row in rows if row["toggles.prioritized"] == "false"]
    assert without
    assert {row["replay.alpha"] for row in without} == {""}
    assert {path.name for path in folder.best.iterdir()} == {f"mine_best{rank}.toml" for rank in (1, 2, 3)}
    spec = load_spec(folder.best / "mine_best1.toml").spec
    assert spec.optimizer.learning_rate == found.ranked[0].settings["optimizer.learning_rate"]
    assert "biased upwards" in (folder.best / "mine_best1.toml").read_text()


def test_the_table_has_the_rank_the_score_and_the_runs_of_each_trial(tmp_path: Path):
    record, folder = begun(tmp_path, ONE_VALUE)
    command(record, folder, lambda member, frames: float(member.values["toggles.n_step"]))
    found = read_standing(record, folder, TrialLog(folder, record.tune, writable=False))
    settings = [trial.settings["toggles.n_step"] for trial in found.trials]
    first = {value: settings.index(value) for value in (2, 3)}
    expected = [
        [str(number), str(4 - value) if number == first[value] else "", f"{value}.0",
         f"trial{first[value]:04}"]
        for number, value in enumerate(settings)
    ]  # fmt: skip
    rows = csv.DictReader(table_csv(found).splitlines())
    assert [[row[name] for name in ("trial", "rank", "score", "runs")] for row in rows] == expected


@pytest.mark.slow
def test_the_plot_has_a_panel_for_the_trials_each_key_and_the_importance(tuned: Tuned):
    found, _, log = tuned
    figure = figure_of(found, log.importance())
    shown = [axes.get_title("left") for axes in figure.axes if axes.get_visible()]
    assert shown == ["trials", "learning_rate", "prioritized", "alpha", "importance"]
    assert encoded_plot(found, log.importance()) == encoded_plot(found, log.importance())


def test_a_tune_without_a_complete_trial_has_a_table_and_no_best_spec(tmp_path: Path):
    record, folder = begun(tmp_path, TEXT)
    command(record, folder, score, kill_at=1)
    log = TrialLog(folder, record.tune, writable=False)
    found = read_standing(record, folder, log)
    write_results(found, folder, log.importance())
    assert folder.table.exists()
    assert not folder.best.exists()
    assert log.importance() == {}


def protocols_of(folder: Path, **changes: object) -> list[str]:
    """Return the protocol lines of a tune of one trial, whose runs record a protocol with some changes."""
    record, tune = begun(folder, TEXT.replace("trials = 20", "trials = 1"))
    command(record, tune, score)
    protocol = evaluation_protocol(tiny_spec(), episodes=3, checkpoint="current", ale_version="", rom_md5="")
    for name in ("trial0000_catch_seed1", "trial0000_catch_seed2"):
        fields = {**asdict(protocol), **changes}
        document = {"spec": {"digest": "", "toml_sha256": ""}, "protocols": {"p": fields}}
        write_json_atomically(tune.runs.path / name / "provenance.json", document)
    return protocol_lines(read_standing(record, tune, TrialLog(tune, record.tune, writable=False)), tune)


def test_a_tune_with_unclipped_rewards_has_its_protocol(tmp_path: Path):
    (line,) = protocols_of(tmp_path, training_max_abs_reward=math.inf)
    assert "trained with life loss terminal and unclipped rewards" in line


def test_a_damaged_protocol_is_unknown_with_the_reason(tmp_path: Path):
    first, second = protocols_of(tmp_path, episodes="three")
    assert first.startswith(f"unknown: {tmp_path / 'tune'}")
    assert first.endswith("seed1/provenance.json: protocols.[...].episodes: expected `int`, got `str`")
    assert "seed2/provenance.json" in second


def test_a_protocol_that_no_run_recorded_is_unknown_with_its_fingerprint(tmp_path: Path):
    record, tune = begun(tmp_path, TEXT.replace("trials = 20", "trials = 1"))
    command(record, tune, score)
    for name in ("trial0000_catch_seed1", "trial0000_catch_seed2"):
        document = {"spec": {"digest": "", "toml_sha256": ""}}
        write_json_atomically(tune.runs.path / name / "provenance.json", document)
    lines = protocol_lines(read_standing(record, tune, TrialLog(tune, record.tune, writable=False)), tune)
    assert [line.rpartition("/")[2] for line in lines] == [
        f"trial0000_catch_seed{seed} recorded none with the fingerprint p" for seed in (1, 2)
    ]
