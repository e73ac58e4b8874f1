"""A catalog that is damaged or contradicts the checkpoints loses no checkpoint and decides nothing."""

import errno
import json
import shutil
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO

import pytest
from tiny import CPU, run

from atari_dqn.errors import DamagedError, UserError
from atari_dqn.run.checkpoint.catalog import read_catalog, write_catalog
from atari_dqn.run.checkpoint.reconcile import reconcile
from atari_dqn.run.checkpoint.rewind import rewind
from atari_dqn.run.checkpoint.store import CheckpointStore
from atari_dqn.run.directory import RunDirectory
from atari_dqn.train import launch
from atari_dqn.train.resumption import resume_point

SHORT = ("training.total_frames=800", "checkpoint.keep_last=3", "checkpoint.period_frames=400")
NEWEST = "step_000000200"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A complete run with the checkpoints of steps 100, 150 (scored) and 200 (scored)."""
    path = tmp_path_factory.mktemp("whole") / "run"
    run(path, *SHORT)
    return path


def catalog_of(path: Path) -> Path:
    return path / "checkpoints/catalog.json"


def bare(path: Path) -> list[dict[str, Any]]:
    """Return the entries as earlier versions wrote them: a list without a digest."""
    return [asdict(entry) for entry in read_catalog(path / "checkpoints")]


def change(path: Path, edit: Callable[[list[dict[str, Any]]], object]) -> None:
    """Replace the catalog of the run by an edited one of earlier versions."""
    entries = bare(path)
    edit(entries)
    catalog_of(path).write_text(json.dumps(entries))


def resumed(path: Path) -> list[str]:
    """Extend a run, and return its notices about the catalog."""
    launch.resume(RunDirectory.open(path), device=CPU, views=[], total_frames=1_000)
    lines = [json.loads(line) for line in (path / "events.jsonl").read_text().splitlines()]
    return [line["message"] for line in lines if line["kind"] == "catalog"]


def test_catalog_of_an_earlier_version_is_read(copied: Path) -> None:
    before = read_catalog(copied / "checkpoints")
    change(copied, lambda entries: None)
    assert read_catalog(copied / "checkpoints") == before


def test_catalog_of_an_earlier_version_needs_no_mending_and_is_sealed_when_the_run_goes_on(
    copied: Path,
) -> None:
    change(copied, lambda entries: None)
    assert resumed(copied) == []
    assert "catalog_sha256" in json.loads(catalog_of(copied).read_text())


def reverse(entries: list[dict[str, Any]]) -> None:
    entries.reverse()


def lose_the_newest(entries: list[dict[str, Any]]) -> None:
    del entries[-1]


def lose_all(entries: list[dict[str, Any]]) -> None:
    entries.clear()


def score_as_text(entries: list[dict[str, Any]]) -> None:
    entries[1]["eval_score"] = "9"


def step_as_text(entries: list[dict[str, Any]]) -> None:
    entries[1]["step"] = "150"


@pytest.mark.fault("H03")
@pytest.mark.parametrize("edit", [reverse, lose_the_newest, lose_all, score_as_text, step_as_text])
def test_run_goes_on_from_the_newest_whole_checkpoint_whatever_the_catalog_says(copied: Path, edit) -> None:
    change(copied, edit)
    point = resume_point(RunDirectory.open(copied))
    assert point.checkpoint is not None
    assert point.checkpoint.name == NEWEST


@pytest.mark.parametrize("edit", [reverse, lose_the_newest, lose_all, score_as_text])
def test_going_on_removes_no_whole_checkpoint_by_the_word_of_the_catalog(copied: Path, edit) -> None:
    change(copied, edit)
    rewind(CheckpointStore(copied / "checkpoints"), 200)
    assert [entry.step for entry in read_catalog(copied / "checkpoints")] == [100, 150, 200]


def test_score_in_the_catalog_that_no_manifest_has_does_not_steer_the_best(copied: Path, whole: Path) -> None:
    def raise_the_oldest(entries: list[dict[str, Any]]) -> None:
        entries[0]["eval_score"] = 1e9

    change(copied, raise_the_oldest)
    found = reconcile(copied / "checkpoints")
    assert found.entries == tuple(read_catalog(whole / "checkpoints"))
    assert found.remarks == (
        "catalog.json differed from the manifest of step_000000100; the manifest is used",
    )


def test_catalog_whose_bytes_were_changed_is_damaged(copied: Path) -> None:
    text = catalog_of(copied).read_text()
    catalog_of(copied).write_text(text.replace('"tag": null', '"tag": "inspect"', 1))
    with pytest.raises(
        DamagedError, match=r"catalog\.json: is not a catalog of checkpoints \(it is not what"
    ):
        read_catalog(copied / "checkpoints")


def test_catalog_of_a_later_version_is_refused_by_its_number(copied: Path) -> None:
    catalog_of(copied).write_text('{"schema_version": 3, "entries": []}')
    with pytest.raises(DamagedError, match="schema version 3, this program reads 2"):
        read_catalog(copied / "checkpoints")


def test_damaged_catalog_is_made_again_and_the_log_tells_of_it(copied: Path) -> None:
    catalog_of(copied).write_text("[")
    (reported,) = resumed(copied)
    assert "catalog.json: is not a catalog of checkpoints" in reported
    assert reported.endswith("; it is rebuilt from the checkpoints")


def test_lost_catalog_is_made_again_and_the_log_tells_of_it(copied: Path) -> None:
    catalog_of(copied).unlink()
    assert resumed(copied) == ["catalog.json was missing; it is rebuilt from the checkpoints"]


def test_newest_checkpoint_that_is_damaged_is_not_passed_over_for_want_of_a_catalog(copied: Path) -> None:
    catalog_of(copied).unlink()
    (copied / "checkpoints" / NEWEST / "state.json").write_text("{}")
    with pytest.raises(DamagedError, match=r"step_000000200/state\.json.*\n.*--checkpoint step_000000150"):
        resume_point(RunDirectory.open(copied))


def test_newest_checkpoint_that_is_gone_is_not_passed_over_for_want_of_a_catalog(copied: Path) -> None:
    catalog_of(copied).unlink()
    shutil.rmtree(copied / "checkpoints" / NEWEST)
    with pytest.raises(DamagedError, match=r"step_000000200/manifest\.json: missing"):
        resume_point(RunDirectory.open(copied))


@pytest.mark.parametrize("first", [150, 200])
def test_newest_checkpoint_that_is_not_listed_keeps_its_agent_though_its_replay_is_gone(
    copied: Path, first: int
) -> None:
    for entry in read_catalog(copied / "checkpoints"):
        if entry.step < first:
            shutil.rmtree(copied / "checkpoints" / entry.path)
    kept = [entry for entry in read_catalog(copied / "checkpoints") if first <= entry.step < 200]
    write_catalog(copied / "checkpoints", kept)
    shutil.rmtree(copied / "checkpoints" / NEWEST / "replay")
    with pytest.raises(DamagedError, match=r"step_000000200: its replay is missing"):
        resumed(copied)
    assert (copied / "checkpoints" / NEWEST / "agent.pt").exists()


def test_older_checkpoint_that_was_removed_by_hand_is_listed_no_longer(copied: Path) -> None:
    shutil.rmtree(copied / "checkpoints/step_000000100")
    found = reconcile(copied / "checkpoints")
    assert [entry.step for entry in found.entries] == [150, 200]
    assert found.remarks == (
        "step_000000100 does not exist, but catalog.json listed it; the entry is removed",
    )


def test_checkpoint_that_a_killed_process_had_not_listed_yet_is_listed(copied: Path) -> None:
    write_catalog(copied / "checkpoints", read_catalog(copied / "checkpoints")[:-1])
    found = reconcile(copied / "checkpoints")
    assert found.remarks == ("catalog.json did not list step_000000200; it is added",)


@pytest.mark.fault("H03")
def test_older_agent_outlives_a_lost_catalog_though_its_replay_is_gone(copied: Path) -> None:
    catalog_of(copied).unlink()
    shutil.rmtree(copied / "checkpoints/step_000000100/replay")
    rewind(CheckpointStore(copied / "checkpoints"), 200)
    assert [entry.step for entry in read_catalog(copied / "checkpoints")] == [100, 150, 200]
    assert (copied / "checkpoints/step_000000100/agent.pt").exists()


def test_what_is_left_of_a_checkpoint_that_is_not_listed_is_removed(copied: Path) -> None:
    write_catalog(copied / "checkpoints", read_catalog(copied / "checkpoints")[1:])
    (copied / "checkpoints/step_000000100/agent.pt").unlink()
    rewind(CheckpointStore(copied / "checkpoints"), 200)
    assert not (copied / "checkpoints/step_000000100").exists()


def test_checkpoint_that_the_system_does_not_read_at_the_moment_is_not_passed_over_as_damaged(
    copied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(path: Path) -> BinaryIO:
        raise OSError(errno.EIO, "Input/output error", str(path))

    write_catalog(copied / "checkpoints", read_catalog(copied / "checkpoints")[:-1])
    monkeypatch.setattr("atari_dqn.run.checkpoint.manifest.open_regular", broken)
    with pytest.raises(UserError, match=rf"{NEWEST}.*input/output error"):
        resume_point(RunDirectory.open(copied))


def test_tag_of_a_checkpoint_comes_back_with_its_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "atari_dqn.train.health.HealthMonitor.check_evaluation", lambda self, mean: mean < 1e9
    )
    path = tmp_path / "run"
    run(path, *SHORT)
    catalog_of(path).unlink()
    assert [entry.tag for entry in reconcile(path / "checkpoints").entries] == [None, "inspect", "inspect"]
