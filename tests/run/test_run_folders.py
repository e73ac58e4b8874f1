"""Command arguments are expanded to run directories."""

import os
from pathlib import Path

import pytest

from atari_dqn.run.folders import expand_run_paths, runs_in


def run(path: Path, *names: str) -> Path:
    path.mkdir(parents=True)
    for name in names or ("spec.toml", "provenance.json"):
        (path / name).touch()
    return path


def test_a_run_directory_stands_for_itself(tmp_path: Path) -> None:
    assert expand_run_paths([run(tmp_path / "a")]) == [tmp_path / "a"]


def test_a_folder_stands_for_the_runs_directly_inside_it_by_name(tmp_path: Path) -> None:
    for name in ("b", "a", "deeper/c"):
        run(tmp_path / name)
    (tmp_path / "notes").mkdir()
    (tmp_path / "sweep.log").touch()
    assert expand_run_paths([tmp_path]) == [tmp_path / "a", tmp_path / "b"]


@pytest.mark.parametrize("left", ["spec.toml", "provenance.json", "checkpoints"])
def test_a_run_that_has_lost_files_is_a_run_still(tmp_path: Path, left: str) -> None:
    assert expand_run_paths([run(tmp_path / "a", left)]) == [tmp_path / "a"]


def test_a_folder_without_runs_stays_itself(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    paths = [tmp_path / "empty", tmp_path / "file", tmp_path / "missing", Path("a\0b")]
    assert expand_run_paths(paths) == paths


def test_a_run_that_is_named_and_in_a_named_folder_counts_once(tmp_path: Path) -> None:
    run(tmp_path / "a")
    run(tmp_path / "b")
    assert expand_run_paths([tmp_path / "b", tmp_path]) == [tmp_path / "b", tmp_path / "a"]


def test_a_run_that_is_being_created_is_left_out(tmp_path: Path) -> None:
    run(tmp_path / ".a.0badcafe.partial")
    run(tmp_path / "b")
    assert expand_run_paths([tmp_path]) == [tmp_path / "b"]


def test_a_link_to_a_run_of_the_same_folder_is_left_out(tmp_path: Path) -> None:
    run(tmp_path / "outputs" / "b")
    (tmp_path / "outputs" / "a_latest").symlink_to("b")
    (tmp_path / "outputs" / "elsewhere").symlink_to(run(tmp_path / "moved"))
    found = expand_run_paths([tmp_path / "outputs"])
    assert [path.name for path in found] == ["b", "elsewhere"]


def test_a_name_that_is_not_utf8_is_a_run_too(tmp_path: Path) -> None:
    name = os.fsdecode(b"run_\xff")
    run(tmp_path / name)
    assert expand_run_paths([tmp_path]) == [tmp_path / name]


def test_a_link_in_a_circle_hides_no_run(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "spec.toml").touch()
    (tmp_path / "circle").symlink_to("circle")
    assert runs_in(tmp_path) == [tmp_path / "a"]
