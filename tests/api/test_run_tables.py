import csv
import json
import re
import shutil
from pathlib import Path

import polars as pl
import pytest
from exported import export
from tiny import CPU, TINY_CATCH, run

import atari_dqn as dqn
from atari_dqn.errors import DamagedError, UserError
from atari_dqn.evaluation.frozen_agent import load_frozen
from atari_dqn.spec.errors import SpecError
from atari_dqn.spec.loader import load_spec
from atari_dqn.telemetry.columns import TABLES, column_names
from atari_dqn.telemetry.events import Event, Progress, Row

FEW = {"training.total_frames": 80, "replay.prefill_steps": 10}


def test_tables_have_the_numbers_of_the_files(trained: Path) -> None:
    tables = dqn.Run(trained).tables
    assert tables.keys() == TABLES.keys()
    for name, table in tables.items():
        assert table.columns == list(column_names(name))
        with (trained / f"{name}.csv").open() as file:
            rows = list(csv.DictReader(file))
        for column in table:
            texts = [row[column.name] for row in rows]
            if column.dtype == pl.Int64:
                assert column.to_list() == [int(text) for text in texts]
            elif column.dtype == pl.Float64:
                assert column.to_list() == [float(text) if text else None for text in texts]
            else:
                assert column.to_list() == texts


def test_a_row_that_is_being_written_is_left_out(trained: Path, tmp_path: Path) -> None:
    run(tmp_path / "run")
    before = dqn.Run(tmp_path / "run").tables["eval_log"]
    with (tmp_path / "run" / "eval_log.csv").open("a") as file:
        file.write("301,12")
    assert dqn.Run(tmp_path / "run").tables["eval_log"].equals(before)


def test_scores_with_a_cell_that_csv_cannot_read_are_damage(trained: Path, tmp_path: Path) -> None:
    path = Path(shutil.copytree(trained, tmp_path / "run", symlinks=True)) / "eval_log.csv"
    path.write_bytes(path.read_bytes() + b"300,\r1200" + b"9" * 200_000 + b"\n")
    with pytest.raises(DamagedError, match=r"eval_log\.csv: cannot be read as a table of scores"):
        _ = dqn.Run(tmp_path / "run").scores


def test_an_archive_is_opened_as_its_run(trained: Path, tmp_path: Path) -> None:
    export(load_frozen(trained, CPU), tmp_path / "agent.dqn")
    own, archived = dqn.Run(trained), dqn.Run(tmp_path / "agent.dqn")
    assert (archived.spec, archived.scores, archived.finished) == (own.spec, own.scores, True)
    assert archived.tables["eval_log"].equals(own.tables["eval_log"])
    assert archived.agent().env_frames == own.agent().env_frames
    with pytest.raises(UserError, match="is an archive of one agent"):
        archived.agent("best")


def test_agents_of_a_run_are_found_by_name(trained: Path) -> None:
    own = dqn.Run(trained)
    assert own.agent("step_000000150").env_frames == 600
    with pytest.raises(UserError, match="no checkpoint 'worst'"):
        own.agent("worst")


def test_train_is_the_run_of_the_command_line(trained: Path, tmp_path: Path) -> None:
    library = dqn.train(TINY_CATCH, run_dir=tmp_path / "library")
    assert library.summary is not None
    own = dqn.Run(trained).summary
    assert own is not None
    assert library.summary["state_digest"] == own["state_digest"]


def test_on_event_gets_every_row_and_notice(tmp_path: Path) -> None:
    events: list[Event] = []
    made = dqn.train(TINY_CATCH, overrides=FEW, run_dir=tmp_path / "run", on_event=events.append)
    rows = [event for event in events if isinstance(event, Row)]
    for name, table in made.tables.items():
        assert sum(row.table == name for row in rows) == len(table), name
    assert any(isinstance(event, Progress) for event in events)


def with_event(trained: Path, path: Path, kind: str, total_frames: int) -> dqn.Run:
    """Return a copy of a run of 1,200 frames with one event more."""
    shutil.copytree(trained, path, symlinks=True)
    with (path / "events.jsonl").open("a") as file:
        file.write(json.dumps({"kind": kind, "step": 300, "data": {"total_frames": total_frames}}) + "\n")
    return dqn.Run(path)


@pytest.mark.parametrize(
    ("kind", "total_frames", "finished"),
    [("extended", 1_600, False), ("resumed", 1_600, False), ("resumed", 1_200, True), ("slow", 1_600, True)],
)
def test_a_run_is_finished_at_its_current_budget(
    trained: Path, tmp_path: Path, kind: str, total_frames: int, finished: bool
) -> None:
    assert with_event(trained, tmp_path / "run", kind, total_frames).finished is finished


def test_the_command_of_the_provenance_is_one_of_the_program(tmp_path: Path) -> None:
    overrides = {**FEW, "toggles.double": True, "game": "catch"}
    made = dqn.train(TINY_CATCH, overrides=overrides, run_dir=tmp_path / "run")
    options = [each.removeprefix("--set=") for each in made.provenance["command_line"][3:]]
    assert options[2:] == ["toggles.double=true", 'game="catch"']
    assert load_spec(TINY_CATCH, options).spec.toggles.double


def test_the_provenance_says_what_was_called(tmp_path: Path) -> None:
    made = dqn.train(TINY_CATCH, overrides=FEW, run_dir=tmp_path / "run")
    assert made.provenance["command_line"] == [
        "dqn", "train", str(TINY_CATCH), "--set=training.total_frames=80", "--set=replay.prefill_steps=10",
    ]  # fmt: skip


def test_wrong_arguments_are_refused_in_words(trained: Path) -> None:
    with pytest.raises(SpecError, match=r'did you mean "learner\.batch_size"'):
        dqn.train(TINY_CATCH, overrides={"learner.batch_sise": 3})
    with pytest.raises(UserError, match="exists and is never overwritten"):
        dqn.train(TINY_CATCH, run_dir=trained)
    with pytest.raises(UserError, match="not a run directory"):
        dqn.Run(trained.parent)


def test_compare_takes_runs_paths_and_folders(trained: Path) -> None:
    by_run, by_path, by_folder = (dqn.compare([each]) for each in (dqn.Run(trained), trained, trained.parent))
    assert by_run.results[0].last.n == by_path.results[0].last.n == by_folder.results[0].last.n == 1
    for strict in (True, False):
        with pytest.raises(UserError, match="not found"):
            dqn.compare([trained, trained.parent / "absent"], strict=strict)


def test_compare_leaves_out_a_folder_without_runs_unless_it_is_strict(trained: Path, tmp_path: Path) -> None:
    assert len(dqn.compare([trained, tmp_path], strict=False).left_out) == 1
    with pytest.raises(UserError, match="not a run directory"):
        dqn.compare([trained, tmp_path])


def test_compare_takes_a_single_run(trained: Path) -> None:
    for one in (dqn.Run(trained), trained, str(trained)):
        (result,) = dqn.compare(one).results
        assert result.group.runs[0].path == trained


@pytest.mark.parametrize("strict", [True, False])
def test_compare_refuses_an_unknown_table_of_human_scores(trained: Path, strict: bool) -> None:
    expected = "found 'nature_2015', expected atari57 or nature2015; did you mean \"nature2015\"?"
    with pytest.raises(UserError, match=re.escape(expected)):
        dqn.compare([trained], human_table="nature_2015", strict=strict)
