"""`dqn sweep` as a user starts it: one small sweep for real, its status, a message for each bad input."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from forked import CommandServer, Finished

from atari_dqn.cli.sweep_outcome import conclude
from atari_dqn.errors import DamagedError, UserError
from atari_dqn.machine.hardware import find_hardware
from atari_dqn.run.checkpoint.manifest import read_manifest
from atari_dqn.run.checkpoint.store import CheckpointStore
from atari_dqn.run.leases.owner import Owner
from atari_dqn.run.sweep.folder import SweepFolder
from atari_dqn.run.sweep.status import SweepStatus
from atari_dqn.scale.members import load_sweep
from atari_dqn.scale.opening import open_sweep
from atari_dqn.scale.scheduler import SweepResult
from atari_dqn.spec.loader import load_spec

TINY = Path(__file__).parents[1] / "tiny_catch.toml"
TEXT = f'spec = "{TINY}"\n[methods.one]\n[methods.two.toggles]\nn_step = 2\n'
Sweep = Callable[..., Finished]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("sweeps")
    (place / "mine.toml").write_text(TEXT)
    return place


@pytest.fixture(scope="module")
def done(command_server: CommandServer, place: Path) -> Finished:
    return command_server.run("sweep", "mine.toml", "--plain", cwd=place)


@pytest.fixture
def sweep(command_server: CommandServer, tmp_path: Path) -> Sweep:
    return lambda *words, **options: command_server.run("sweep", *words, **{"cwd": tmp_path, **options})


def state_digest(run: Path) -> str:
    return str(read_manifest(CheckpointStore(run / "checkpoints").latest())["state_digest"])


def test_a_sweep_trains_every_run_and_compares_them(done: Finished, place: Path):
    assert done.code == 0, done.err
    assert "mine: 2 finished; 100.0% of 2.4k frames" in done.out
    assert re.search(r"^one\S* +A\* · n = 1 · final evaluation", done.out, re.MULTILINE)
    runs = sorted(path.name for path in (place / "outputs" / "mine").iterdir())
    assert runs == ["one_catch_seed1", "sweep", "two_catch_seed1"]
    assert list((place / "outputs" / "mine" / "sweep" / "leases").iterdir()) == []


def test_a_run_of_a_sweep_is_the_run_of_train(done: Finished, place: Path, command_server: CommandServer):
    options = ["--set", "toggles.n_step=2", "--run-dir", place / "alone"]
    assert command_server.run("train", TINY, *options, "--plain").code == 0
    assert state_digest(place / "outputs" / "mine" / "two_catch_seed1") == state_digest(place / "alone")


def test_its_provenance_has_the_threads_of_the_sweep(done: Finished, place: Path):
    provenance = json.loads((place / "outputs" / "mine" / "one_catch_seed1" / "provenance.json").read_text())
    assert (provenance["torch_threads"], provenance["name"]) == (1, "one_catch")


def test_a_second_command_trains_nothing_again(done: Finished, place: Path, sweep: Sweep):
    before = (place / "outputs" / "mine" / "one_catch_seed1" / "summary.json").read_bytes()
    again = sweep(place / "outputs" / "mine", "--plain")
    assert again.code == 0
    assert (place / "outputs" / "mine" / "one_catch_seed1" / "summary.json").read_bytes() == before


@pytest.mark.parametrize("words", [("sweep", "--status"), ("watch", "--once")])
def test_the_status_is_read_from_the_files(
    done: Finished, place: Path, command_server: CommandServer, words: tuple[str, str]
):
    shown = command_server.run(words[0], place / "outputs" / "mine", words[1])
    assert shown.code == 0
    assert re.search(r"^two_catch_seed1 +finished +1.2k +100%", shown.out, re.MULTILINE)
    assert "mine: 2 finished; 100.0% of 2.4k frames" in shown.out


def test_a_plan_of_it_has_the_measured_rates(done: Finished, place: Path, sweep: Sweep):
    shown = sweep("mine.toml", "--plan", cwd=place)
    assert "2 runs, 0 of them to do: 0 frames" in shown.out


def test_a_plan_starts_and_writes_nothing(sweep: Sweep, tmp_path: Path):
    (tmp_path / "mine.toml").write_text(TEXT)
    shown = sweep("mine.toml", "--plan")
    assert shown.code == 0
    assert "2 runs, 2 of them to do: 2,400 frames" in shown.out
    assert [path.name for path in tmp_path.iterdir()] == ["mine.toml"]


BAD = {
    ("nothing",): "nothing: no such file; expected a sweep file, the folder of a sweep, or the name of",
    (".",): ".: is not the folder of a sweep; expected a sweep file, or a folder it was begun in",
    ("mine.toml", "--status"): "outputs/mine: no sweep has begun there; `dqn sweep` begins it",
    ("mine.toml", "--status", "--plan"): "--plan and --status: expected one of them",
    ("mine.toml", "--measure"): "--measure: expected with --plan",
    ("mine.toml", "--plan", "--retry"): "--retry: expected without --plan and --status",
    ("mine.toml", "--status", "--jobs", "2", "--plain"): "--status: expected without --jobs, --plain",
    (
        "mine.toml",
        "--plan",
        "--plain",
        "--heartbeat",
        "3",
    ): "--plan: expected without --plain, --heartbeat: it",
    ("mine.toml", "--status", "--retry"): "--retry: expected without --plan and --status",
    ("mine.toml", "--on", "loca"): "--on: found 'loca', expected local or ray; did you mean \"local\"?",
    ("mine.toml", "--device", "cuda:7"): "device 'cuda:7' is not available: found 0 CUDA devices",
    ("mine.toml", "--folder", "mine.toml"): "mine.toml: is not a folder; name another with --folder",
    ("mine.toml", "--jobs", "0"): "--jobs: found '0', expected an integer at least 1",
}
"""Arguments, and the message with which they are refused."""


@pytest.mark.parametrize("words", BAD, ids=" ".join)
def test_bad_input_is_one_message_and_starts_nothing(sweep: Sweep, tmp_path: Path, words: tuple[str, ...]):
    (tmp_path / "mine.toml").write_text(TEXT)
    refused = sweep(*words)
    assert (refused.code, refused.out) == (UserError.exit_code, "")
    assert BAD[words] in refused.err
    assert len(refused.err.splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["mine.toml"]


@pytest.mark.parametrize("option", ["--plan", "--plain"])
def test_more_threads_than_cores_are_refused_before_anything_is_written(
    sweep: Sweep, tmp_path: Path, option: str
):
    (tmp_path / "mine.toml").write_text(f"{TEXT}".replace("[methods.one]", "threads = 1000\n[methods.one]"))
    refused = sweep("mine.toml", option)
    assert (refused.code, refused.out) == (2, "")
    assert 'learner.threads: found 1, expected "auto" or 1000' in refused.err
    (tmp_path / "mine.toml").write_text(
        TEXT.replace("[methods.one]", 'threads = 1000\n[set]\nlearner.threads = "auto"\n[methods.one]')
    )
    refused = sweep("mine.toml", option)
    assert (refused.code, refused.out) == (2, "")
    assert "threads: found 1000, expected at most" in refused.err
    assert [path.name for path in tmp_path.iterdir()] == ["mine.toml"]


def test_a_folder_does_not_go_on_with_another_device(done: Finished, place: Path, sweep: Sweep):
    record = place / "outputs" / "mine" / "sweep" / "record.json"
    before = record.read_text()
    record.write_text(before.replace('"device": "cpu"', '"device": "cuda"'))
    found = sweep("outputs/mine", "--device", "cpu", "--plain", cwd=place)
    record.write_text(before)
    assert found.code == 2
    assert "its runs began with device cuda, found cpu" in found.err


def test_a_damaged_record_is_named_with_what_can_be_done(sweep: Sweep, tmp_path: Path):
    record = tmp_path / "mine" / "sweep" / "record.json"
    record.parent.mkdir(parents=True)
    record.write_text("{")
    refused = sweep("mine", "--status")
    assert refused.code == DamagedError.exit_code
    assert "mine/sweep/record.json: " in refused.err
    assert "restore the file, or begin the sweep in another folder: `dqn resume`" in refused.err


LARGE = "[methods.large]\nreplay.capacity_steps = 1_000_000_000_000\n"


@pytest.mark.parametrize("options", [(), ("--plan",)], ids=["train", "plan"])
def test_a_sweep_with_a_run_that_cannot_fit_is_refused_before_its_folder_is_made(
    sweep: Sweep, tmp_path: Path, options: tuple[str, ...]
):
    (tmp_path / "mine.toml").write_text(TEXT + LARGE)
    refused = sweep("mine.toml", *options)
    assert refused.code == UserError.exit_code
    assert "large_catch_seed1 does not fit: this machine has too little RAM and disk" in refused.err
    assert bool(refused.out) == bool(options)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.toml"]


def test_a_run_that_cannot_fit_is_left_to_other_hosts_that_work_on_the_sweep(sweep: Sweep, tmp_path: Path):
    (tmp_path / "mine.toml").write_text(TEXT + LARGE)
    folder = SweepFolder(tmp_path / "outputs" / "mine")
    hardware = find_hardware(tmp_path, with_gpus=False)
    open_sweep(load_sweep(tmp_path / "mine.toml"), folder.path, device="cpu", hardware=hardware)
    elsewhere = Owner(host="elsewhere", machine="another machine", pid=4, started=7)
    assert folder.leases.take("one_catch_seed1", elsewhere) is not None
    shown = sweep("mine.toml", "--plan")
    assert (shown.code, shown.err) == (0, "")
    assert "large_catch_seed1 does not fit: this machine has too little RAM and disk; left to" in shown.out


def test_what_has_finished_is_compared_also_if_a_run_could_not_be_trained(
    done: Finished, place: Path, capsys: pytest.CaptureFixture[str]
):
    status = SweepStatus(place / "outputs" / "mine")
    status.refresh()
    error = UserError("large does not fit")
    result = SweepResult(finished=("one_catch_seed1",), failed={}, unfinished=("large",), error=error)
    with pytest.raises(UserError, match="large does not fit"):
        conclude(status, result, None)
    assert re.search(r"^one\S* +A\* · n = 1 · final evaluation", capsys.readouterr().out, re.MULTILINE)


def test_the_groups_are_compared_in_the_order_of_the_sweep_file(
    done: Finished, place: Path, sweep: Sweep, command_server: CommandServer
):
    folder = place / "ordered"
    text = (place / "mine.toml").read_text()
    first, second = "[methods.one]\n", text[text.index("[methods.two") :]
    folder.mkdir()
    (folder / "mine.toml").write_text(text.replace(first + second, second + first))
    shutil.copytree(place / "outputs", folder / "outputs")
    tables = [
        sweep("mine.toml", "--plain", cwd=folder).out,
        command_server.run("compare", "outputs/mine", cwd=folder).out,
    ]
    for table in tables:
        assert re.findall(r"^(one|two)\S* +A\* · n = 1", table, re.MULTILINE) == ["two", "one"]


def test_the_tiny_spec_has_no_auto_key():
    assert load_spec(TINY).spec.learner.precision == "fp32"
