"""A run of the previous version, in `earlier_run.tar.xz`, resumes under this version.

It was interrupted at 800 of 1,200 frames, with the checkpoints of steps 150 and 200; its catalog is a list
without a digest, and its spec has no period of checkpoints. `benchmarks/resume_of_earlier.py` compares bits.
"""

import json
import tarfile
from pathlib import Path

import pytest
import torch
from tiny import CPU

from atari_dqn.cli import spec
from atari_dqn.compare.load import load_runs
from atari_dqn.evaluation.checkpoint_score import evaluate_checkpoint
from atari_dqn.evaluation.frozen_agent import load_frozen
from atari_dqn.record.checkpoint_recording import record_checkpoint
from atari_dqn.record.recording import VideoOptions
from atari_dqn.run.checkpoint.catalog import read_catalog
from atari_dqn.run.directory import RunDirectory
from atari_dqn.run.tailing.status import RunStatus
from atari_dqn.telemetry.columns import column_names
from atari_dqn.train import launch
from atari_dqn.train.resume_point import beginning_of, recorded_spec
from atari_dqn.train.resumption import reopened
from atari_dqn.verify.checks import check_run

ARCHIVE = Path(__file__).with_name("earlier_run.tar.xz")
TABLES = ("train_log", "update_log", "eval_log", "replay_log", "prediction_log")


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked run."""
    return unpacked(tmp_path_factory.mktemp("earlier"))


@pytest.fixture(scope="module")
def resumed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run, resumed to its end."""
    path = unpacked(tmp_path_factory.mktemp("resumed"))
    launch.resume(RunDirectory.open(path), device=CPU, views=[], total_frames=None)
    return path


def unpacked(folder: Path) -> Path:
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    return folder / "old"


def test_every_file_of_an_earlier_run_is_found_whole(earlier: Path) -> None:
    assert check_run(RunDirectory.open(earlier)).checkpoints == ("step_000000150", "step_000000200")


def test_catalog_of_an_earlier_run_is_read(earlier: Path) -> None:
    found = [(entry.step, entry.eval_score) for entry in read_catalog(earlier / "checkpoints")]
    assert found == [(150, pytest.approx(-2.67, abs=0.01)), (200, None)]


def test_earlier_run_is_saved_every_ten_minutes_from_now_on(earlier: Path) -> None:
    checkpoint = recorded_spec(RunDirectory.open(earlier)).spec.checkpoint
    assert (checkpoint.period_frames, checkpoint.period_seconds) == (1_000_000, 600.0)


def with_threads(run: Path, threads: int) -> RunDirectory:
    """Change the number of threads that the provenance of a run recorded, which is 1."""
    provenance = run / "provenance.json"
    text = provenance.read_text()
    assert text.count('"torch_threads": 1,') == 1
    provenance.write_text(text.replace('"torch_threads": 1,', f'"torch_threads": {threads},'))
    return RunDirectory.open(run)


def test_threads_of_an_earlier_run_are_read_from_its_provenance(tmp_path: Path) -> None:
    run = with_threads(unpacked(tmp_path), 2)
    assert recorded_spec(run).spec.learner.threads == 2


def test_earlier_run_from_its_beginning_computes_with_its_number_of_threads(tmp_path: Path) -> None:
    run, before = with_threads(unpacked(tmp_path), 2), torch.get_num_threads()
    try:
        with reopened(beginning_of(run), CPU):
            assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_spec_of_an_earlier_run_is_shown_with_its_number_of_threads(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec.show(with_threads(unpacked(tmp_path), 2).path)
    assert "\nthreads = 2\n" in capsys.readouterr().out


def test_earlier_run_can_be_compared(earlier: Path) -> None:
    assert [evaluation.env_frames for evaluation in load_runs([earlier])[0].evaluations] == [300, 600]


def test_earlier_run_can_be_evaluated_and_recorded(earlier: Path) -> None:
    agent = load_frozen(earlier, CPU)
    (played,) = evaluate_checkpoint(agent, episodes=1).score.returns
    recorded = record_checkpoint(agent, options=VideoOptions(scale=2), on_progress=lambda *_: None)
    assert [game.result.episode_return for game in recorded.games] == [played]


def test_earlier_run_can_be_followed(earlier: Path) -> None:
    status = RunStatus(earlier)
    status.refresh()
    assert (status.state, status.env_frames, status.total_frames) == ("interrupted", 800, 1_200)


def test_resumed_earlier_run_ends_at_its_budget(resumed: Path) -> None:
    assert json.loads((resumed / "summary.json").read_text())["env_frames"] == 1_200


@pytest.mark.parametrize("table", TABLES)
def test_resumed_earlier_run_keeps_the_rows_it_had(resumed: Path, earlier: Path, table: str) -> None:
    before = (earlier / f"{table}.csv").read_bytes()
    assert (resumed / f"{table}.csv").read_bytes().startswith(before)


def test_table_that_an_earlier_run_lacks_begins_with_the_resume(resumed: Path, earlier: Path) -> None:
    assert not (earlier / "memory_log.csv").exists()
    assert (resumed / "memory_log.csv").read_text().splitlines() == [",".join(column_names("memory_log"))]


def test_resumed_earlier_run_needs_no_mending(resumed: Path) -> None:
    lines = [json.loads(line) for line in (resumed / "events.jsonl").read_text().splitlines()]
    assert [line["message"] for line in lines if line["kind"] == "catalog"] == []


def test_resumed_earlier_run_has_a_sealed_catalog(resumed: Path) -> None:
    assert "catalog_sha256" in json.loads((resumed / "checkpoints/catalog.json").read_text())


def test_column_with_its_former_name_is_continued_under_it(resumed: Path) -> None:
    header, *rows = (resumed / "train_log.csv").read_text().splitlines()
    assert header.split(",")[3] == "lane"
    assert {len(row.split(",")) for row in rows} == {9}
