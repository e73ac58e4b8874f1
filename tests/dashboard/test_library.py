from dataclasses import replace
from pathlib import Path

import pytest

from atari_dqn.dashboard.library import Library
from atari_dqn.spec.game_name import game_name
from atari_dqn.spec.keys import Scalar

BROKEN = "<img src=x onerror=alert(1)>"
RECORD = '{"spec": {"digest": "", "toml_sha256": ""}}'
BUDGET = "[training]\ntotal_frames = 4\n"


def test_every_run_below_a_linked_root_is_found(root: Path) -> None:
    names = {run.name for run in Library(root).readable()}
    assert names == {
        *(f"pong_1_vanilla [é] seed{seed}" for seed in (1, 2)),
        *(f"pong_2_double [é] seed{seed}" for seed in (1, 2)),
        "cut",
        "no table",
    }


def test_what_cannot_be_read_is_named_with_the_reason(root: Path) -> None:
    unreadable = {run.name: run.unreadable for run in Library(root).runs() if run.unreadable}
    assert "invalid value" in unreadable.pop(BROKEN)
    assert unreadable == {"led out": "a link that leads out of the root; it is not followed"}


def test_a_run_that_may_not_be_read_is_named(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closed = root.resolve() / "cut"
    monkeypatch.setattr("os.access", lambda path, mode: Path(path) != closed)
    assert {run.name: run.unreadable for run in Library(root).runs()}["cut"] == "permission denied"


def test_root_that_is_removed_while_it_is_shown_is_named(tmp_path: Path) -> None:
    (tmp_path / "outputs").mkdir()
    library = Library(tmp_path / "outputs")
    (tmp_path / "outputs").rmdir()
    assert [run.unreadable for run in library.runs()] == [f"{tmp_path / 'outputs'} is not there any more"]


def test_a_run_whose_frames_flicker_has_another_game(root: Path) -> None:
    run = next(run for run in Library(root).readable() if run.name.startswith("pong_2"))
    flickering = replace(run, values={**run.values, "env.flicker_probability": 0.5})
    assert (run.game, flickering.game) == ("pong", "pong, flicker 0.5")


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ({}, "?"),
        ({"game": "pong", "env.flicker_probability": 0.0}, "pong"),
        ({"game": "pong", "env.flicker_probability": "often"}, "pong"),
    ],
)
def test_a_game_has_a_name_though_its_spec_is_damaged(values: dict[str, Scalar], name: str) -> None:
    assert game_name(values) == name


def test_a_runs_spec_and_marks_are_known(root: Path) -> None:
    run = next(run for run in Library(root).readable() if run.name.startswith("pong_2"))
    assert (run.game, run.track_label, run.values["toggles.double"]) == ("pong", "B", True)


def test_seeds_of_one_spec_have_one_method(root: Path) -> None:
    methods = {run.method for run in Library(root).readable() if run.name.startswith("pong_")}
    assert len(methods) == 2


def test_a_file_inside_is_found(root: Path) -> None:
    assert Library(root).inside("cut/spec.toml") == root.resolve() / "cut" / "spec.toml"


@pytest.mark.parametrize(
    "relative",
    [
        "../outside/spec.toml",
        "cut/../../outside/spec.toml",
        "/etc/passwd",
        "led out/spec.toml",
        "pong_2_double [é] seed2/videos/step_000500000_run.mp4",
        "cut",
        "nothing",
        "cut/\0spec.toml",
        "x" * 5000,
    ],
)
def test_nothing_outside_is_found_by_dots_absolute_paths_or_links(root: Path, relative: str) -> None:
    assert Library(root).inside(relative) is None


def test_500_runs_are_found(tmp_path: Path) -> None:
    for number in range(500):
        run = tmp_path / f"run {number}"
        run.mkdir()
        (run / "spec.toml").write_text(f'track = "A"\ngame = "pong"\nseed = {number}\n{BUDGET}')
        (run / "provenance.json").write_text(RECORD)
    assert len(Library(tmp_path).readable()) == 500


def test_runs_are_found_below_folders_that_group_them(tmp_path: Path) -> None:
    run = tmp_path / "sweeps" / "double" / "seed1"
    run.mkdir(parents=True)
    (run / "spec.toml").write_text(f'track = "A"\ngame = "pong"\nseed = 1\n{BUDGET}')
    (run / "provenance.json").write_text(RECORD)
    assert [entry.name for entry in Library(tmp_path).readable()] == ["sweeps/double/seed1"]
