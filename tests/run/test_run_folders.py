"""Command arguments are expanded to run directories."""

import os
from pathlib import Path

import pytest

from atari_dqn.errors import UserError
from atari_dqn.run.folders import expand_run_paths


def run(path: Path, *names: str) -> Path:
    path.mkdir(parents=True)
    for name in names or ("spec.toml", "provenance.json"):
        (path / name).touch()
    return path


def test_a_run_directory_stands_for_itself(tmp_path: Path) -> None:
    assert expand_run_paths([run(tmp_path / "a")]) == [tmp_path / "a"]


def test_a_folder_stands_for_the_runs_below_it_those_directly_in_it_first(tmp_path: Path) -> None:
    for name in ("b", "a", "a_sweep/c", "a_sweep/a"):
        run(tmp_path / name)
    (tmp_path / "notes").mkdir()
    (tmp_path / "sweep.log").touch()
    found = [str(path.relative_to(tmp_path)) for path in expand_run_paths([tmp_path])]
    assert found == ["a", "b", "a_sweep/a", "a_sweep/c"]


def test_archives_in_a_folder_count_as_runs_where_they_can_be_compared(tmp_path: Path) -> None:
    run(tmp_path / "b")
    for name in ("b.dqn", "a.dqn", "shared/c.dqn", ".d.dqn", "b/e.dqn"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    found = [str(path.relative_to(tmp_path)) for path in expand_run_paths([tmp_path], archives=True)]
    assert found == ["a.dqn", "b", "b.dqn", "shared/c.dqn"]
    assert expand_run_paths([tmp_path]) == [tmp_path / "b"]


def test_nothing_in_a_run_is_another_run(tmp_path: Path) -> None:
    run(tmp_path / "a" / "copies" / "b")
    (tmp_path / "a" / "spec.toml").touch()
    assert expand_run_paths([tmp_path]) == [tmp_path / "a"]


def test_a_tune_stands_for_none_of_its_runs(tmp_path: Path) -> None:
    run(tmp_path / "outputs" / "tune" / "runs" / "t1")
    (tmp_path / "outputs" / "tune" / "tune.json").touch()
    run(tmp_path / "outputs" / "z")
    assert expand_run_paths([tmp_path / "outputs"]) == [
        tmp_path / "outputs" / "tune",
        tmp_path / "outputs" / "z",
    ]


def test_the_folder_of_the_runs_of_a_tune_stands_for_them(tmp_path: Path) -> None:
    run(tmp_path / "tune" / "runs" / "t1")
    (tmp_path / "tune" / "tune.json").touch()
    assert expand_run_paths([tmp_path / "tune" / "runs"]) == [tmp_path / "tune" / "runs" / "t1"]


def test_a_path_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    run(tmp_path / "a")
    with pytest.raises(UserError, match=r"missing, .*absent: not found; expected a run, a folder"):
        expand_run_paths([tmp_path / "a", tmp_path / "missing", tmp_path / "absent"])


def test_a_broken_link_stays_in_the_list(tmp_path: Path) -> None:
    (tmp_path / "latest").symlink_to("removed")
    assert expand_run_paths([tmp_path / "latest"]) == [tmp_path / "latest"]


def test_a_sweep_whose_record_is_damaged_has_its_runs_by_name(tmp_path: Path) -> None:
    for name in ("b", "a"):
        run(tmp_path / name)
    (tmp_path / "sweep").mkdir()
    (tmp_path / "sweep" / "record.json").write_text("{")
    assert expand_run_paths([tmp_path]) == [tmp_path / "a", tmp_path / "b"]


@pytest.mark.parametrize("left", ["spec.toml", "provenance.json", "checkpoints"])
def test_a_run_that_has_lost_files_is_a_run_still(tmp_path: Path, left: str) -> None:
    assert expand_run_paths([run(tmp_path / "a", left)]) == [tmp_path / "a"]


def test_a_folder_without_runs_stays_itself(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    paths = [tmp_path / "empty", tmp_path / "file"]
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
    assert expand_run_paths([tmp_path]) == [tmp_path / "a"]


@pytest.mark.parametrize(("linking", "own"), [("a", "z"), ("z", "a")])
def test_a_run_has_the_name_of_its_own_folder_wherever_a_link_to_it_is(
    tmp_path: Path, linking: str, own: str
) -> None:
    run(tmp_path / own / "b")
    (tmp_path / linking).mkdir()
    (tmp_path / linking / "latest").symlink_to(tmp_path / own / "b")
    assert expand_run_paths([tmp_path]) == [tmp_path / own / "b"]


def test_a_run_and_a_link_to_it_are_one_run(tmp_path: Path) -> None:
    run(tmp_path / "outputs" / "b")
    (tmp_path / "latest").symlink_to("outputs/b")
    assert expand_run_paths([tmp_path / "latest", tmp_path / "outputs"]) == [tmp_path / "latest"]


def test_folder_that_may_not_be_read_is_reported_not_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        run(tmp_path / name)
    close(tmp_path / "b", monkeypatch)
    monkeypatch.setattr("atari_dqn.run.folders.is_run", lambda path: path == tmp_path / "a")
    assert expand_run_paths([tmp_path]) == [tmp_path / "a", tmp_path / "b"]


def close(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Take away the permission to read a folder, which root always has."""
    monkeypatch.setattr("os.access", lambda path, mode: Path(path) != folder)
