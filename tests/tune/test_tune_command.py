"""`dqn tune` as a user starts it: one small tune for real, what it leaves, a message for each bad input."""

import csv
import fcntl
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from forked import CommandServer, Finished
from sweeping import program

from atari_dqn.scale.tuning.folder import TuneFolder, TuneRecord, write_tune_record
from atari_dqn.scale.tuning.tune_file import load_tune
from atari_dqn.spec.loader import load_spec

TINY = Path(__file__).parents[1] / "tiny_catch.toml"
TEXT = (
    f'spec = "{TINY}"\n[space]\ntoggles.n_step = {{ choice = [1, 2] }}\n'
    "[objective]\nscore = 'mean_length_frames'\n[sampler]\nrandom_trials = 2\n[budget]\ntrials = 3\n"
)
Tune = Callable[..., Finished]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("tunes")
    (place / "mine.toml").write_text(TEXT)
    return place


@pytest.fixture(scope="module")
def done(place: Path) -> subprocess.CompletedProcess[str]:
    return program("tune", "mine.toml", "--plain", folder=place)


@pytest.fixture
def tune(command_server: CommandServer, tmp_path: Path) -> Tune:
    return lambda *words, **options: command_server.run("tune", *words, **{"cwd": tmp_path, **options})


@pytest.mark.slow
def test_a_tune_prints_its_trials_with_unit_and_protocol(done: subprocess.CompletedProcess[str]):
    assert done.returncode == 0, done.stderr
    assert "trial 0: n_step" in done.stdout
    assert "mine: 3 complete, of a budget of 3 trials; " in done.stdout
    assert (
        "maximize the mean over 1 seed of mean_length_frames (emulator frames per episode) of the full "
        "evaluation at 1,200 frames" in done.stdout
    )
    assert "protocol: ε 0.05 · sticky 0 · no-op 1–30 · cap 120 frames" in done.stdout


@pytest.mark.slow
def test_its_folder_has_runs_best_specs_a_table_and_a_plot(
    done: subprocess.CompletedProcess[str], place: Path
):
    folder = place / "outputs" / "mine"
    assert {"runs", "best", "trials.csv", "trials.png", "trials.jsonl", "tune.json"} <= {
        path.name for path in folder.iterdir()
    }
    assert (folder / "trials.png").read_bytes().startswith(b"\x89PNG")
    assert list((folder / "runs" / "sweep" / "leases").iterdir()) == []
    rows = list(csv.DictReader((folder / "trials.csv").read_text().splitlines()))
    assert [row["trial"] for row in rows] == ["0", "1", "2"]
    assert {row["unit"] for row in rows} == {"emulator frames per episode"}
    assert {row["toggles.n_step"] for row in rows} <= {"1", "2"}


@pytest.mark.slow
def test_the_best_spec_is_that_of_its_run(done: subprocess.CompletedProcess[str], place: Path):
    folder = place / "outputs" / "mine"
    rows = csv.DictReader((folder / "trials.csv").read_text().splitlines())
    best = next(row for row in rows if row["rank"] == "1")
    spec = load_spec(folder / "best" / "mine_best1.toml").spec
    assert spec == load_spec(folder / "runs" / f"{best['runs']}_catch_seed1" / "spec.toml").spec
    assert spec.toggles.n_step == int(best["toggles.n_step"])


@pytest.mark.slow
def test_a_second_command_trains_nothing_again(
    done: subprocess.CompletedProcess[str], place: Path, tune: Tune
):
    runs = place / "outputs" / "mine" / "runs"
    before = {path: path.read_bytes() for path in runs.glob("*/summary.json")}
    again = tune(place / "outputs" / "mine", "--plain")
    assert again.code == 0
    assert {path: path.read_bytes() for path in runs.glob("*/summary.json")} == before


@pytest.mark.slow
def test_the_status_is_read_from_the_files(done: subprocess.CompletedProcess[str], place: Path, tune: Tune):
    shown = tune(place / "outputs" / "mine", "--status")
    assert shown.code == 0
    assert shown.out.splitlines() == done.stdout[done.stdout.index("rank trial") :].splitlines()[:-1]


@pytest.mark.slow
def test_only_the_budget_of_a_folder_can_be_raised(
    done: subprocess.CompletedProcess[str], place: Path, tune: Tune, tmp_path: Path
):
    folder = place / "outputs" / "mine"
    options = ["--folder", folder, "--plan"]
    path = tmp_path / "mine.toml"
    path.write_text(TEXT.replace("[1, 2]", "[1, 3]").replace("random_trials = 2", "random_trials = 3"))
    other = tune("mine.toml", *options)
    assert other.code == 2
    assert f"{folder}: holds a tune that differs in toggles.n_step, sampler.random_trials; only" in other.err
    path.write_text(TEXT.replace("trials = 3", "trials = 2"))
    assert "budget.trials: found 2, the folder has 3; a budget can only" in tune("mine.toml", *options).err
    path.write_text(TEXT.replace("trials = 3", "hours = 2"))
    assert "budget.hours: found 2.0, the folder has no limit" in tune("mine.toml", *options).err
    path.write_text(TEXT.replace("trials = 3", "trials = 4"))
    assert "4 runs at most" in tune("mine.toml", *options).out


def test_a_plan_starts_and_writes_nothing(tune: Tune, tmp_path: Path):
    (tmp_path / "mine.toml").write_text(TEXT)
    shown = tune("mine.toml", "--plan")
    assert shown.code == 0
    assert "toggles.n_step: choice 1, 2" in shown.out
    assert "a trial: 1 run of 1,200 frames" in shown.out
    assert [path.name for path in tmp_path.iterdir()] == ["mine.toml"]


def test_jobs_limit_the_runs_at_once_of_a_plan(tune: Tune, tmp_path: Path):
    (tmp_path / "mine.toml").write_text(TEXT.replace("[sampler]", "[sampler]\ntrials_at_once = 2"))
    assert "at once here: 1 run of 2 trials" in tune("mine.toml", "--plan", "--jobs", "1").out


def test_what_a_killed_first_write_left_does_not_keep_a_tune_from_its_folder(tune: Tune, tmp_path: Path):
    (tmp_path / "mine.toml").write_text(TEXT)
    (tmp_path / "outputs/mine").mkdir(parents=True)
    (tmp_path / "outputs/mine/.tune.json.0badcafe.partial").touch()
    assert tune("mine.toml", "--plan").code == 0


BAD = {
    ("nothing",): "nothing: no such file; expected a tune file, the folder of a tune, or the name of a ship",
    (".",): ".: is not the folder of a tune; expected a tune file, or a folder it was begun in",
    ("mine.toml", "--status"): "outputs/mine: no tune has begun there; `dqn tune` begins it",
    ("mine.toml", "--status", "--device", "cpu"): "--status: expected without --device",
    ("mine.toml", "--plan", "--plain"): "--plan: expected without --plain: it starts nothing",
    ("mine.toml", "--status", "--plan"): "--plan and --status: expected one of them",
    ("mine.toml", "--device", "cuda:7"): "device 'cuda:7' is not available: found 0 CUDA devices",
    ("mine.toml", "--folder", "mine.toml"): "mine.toml: is not a folder; name another folder with --folder",
    ("mine.toml", "--folder", "other"): "other: holds other files; a tune begins in a folder of its own",
    ("mine.toml", "--jobs", "0"): "--jobs: found '0', expected an integer at least 1",
    ("mine.toml", "--folder", "damaged"): "schema version None; this program reads 1; restore the file",
}  # fmt: skip
"""Arguments, and the message with which they are refused."""


@pytest.mark.parametrize("words", BAD, ids=" ".join)
def test_bad_input_is_refused_before_anything_is_written(tune: Tune, tmp_path: Path, words: tuple[str, ...]):
    (tmp_path / "mine.toml").write_text(TEXT)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "sweep").mkdir()
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "tune.json").write_text("{}")
    refused = tune(*words)
    assert (refused.code, refused.out) == (4 if "damaged" in words else 2, "")
    assert BAD[words] in refused.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["damaged", "mine.toml", "other"]


def test_runs_that_cannot_fit_are_refused_before_anything_is_written(tune: Tune, tmp_path: Path):
    (tmp_path / "mine.toml").write_text(f"{TEXT}[set]\nreplay.capacity_steps = 1_000_000_000\n")
    refused = tune("mine.toml")
    assert refused.code == 2
    assert "a run of mine does not fit: this machine has too little RAM" in refused.err
    assert [path.name for path in tmp_path.iterdir()] == ["mine.toml"]


def test_a_log_that_is_damaged_is_named(tune: Tune, tmp_path: Path):
    (tmp_path / "mine.toml").write_text(TEXT.replace("trials = 3", "trials = 1"))
    folder = tmp_path / "outputs" / "mine"
    assert tune("mine.toml", "--plan").code == 0
    folder.mkdir(parents=True)
    write_tune_record(
        TuneFolder(folder), TuneRecord(tune=load_tune(tmp_path / "mine.toml"), device="cpu", auto={})
    )
    (folder / "trials.jsonl").write_text("no log\nat all\n")
    shown = tune(folder, "--status")
    assert shown.code == 4
    assert f"{folder}/trials.jsonl: is not a log of trials" in shown.err


def test_two_commands_do_not_work_in_a_folder_at_the_same_time(tune: Tune, tmp_path: Path):
    (tmp_path / "mine.toml").write_text(TEXT)
    folder = tmp_path / "outputs" / "mine"
    folder.mkdir(parents=True)
    with (folder / ".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        refused = tune("mine.toml")
    assert refused.code == 2
    assert "another `dqn tune` works there; wait for it, or use --status to look" in refused.err
    assert not (folder / "tune.json").exists()
