"""The page of sweeps."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from atari_dqn.dashboard.library import Library
from atari_dqn.machine.hardware import find_hardware
from atari_dqn.run.sweep.status import MemberStatus, SweepStatus
from atari_dqn.run.tailing.isolation import Unreadable
from atari_dqn.scale.members import load_sweep
from atari_dqn.scale.opening import open_sweep


def row_of(member: MemberStatus) -> dict[str, Any]:
    from atari_dqn.dashboard.pages import sweeps  # here, because NiceGUI takes each worker a second

    return sweeps.row_of(member)


def make_sweep(root: Path, *, seeds: int) -> Path:
    path = root.parent / "mine.toml"
    path.write_text(f'spec = "catch_smoke"\nseeds = {seeds}\n')
    hardware = find_hardware(Path.cwd(), with_gpus=False)
    return open_sweep(load_sweep(path), root / "mine", device="cpu", hardware=hardware).folder.path


def test_sweeps_below_the_root_are_found_with_their_runs(tmp_path: Path):
    make_sweep(tmp_path / "root", seeds=2)
    (sweep,) = Library(tmp_path / "root").sweeps().values()
    assert isinstance(sweep, SweepStatus)
    assert [row_of(each)["state"] for each in sweep.members] == ["waiting", "waiting"]


def test_members_that_were_added_appear(tmp_path: Path):
    library = Library(tmp_path / "root")
    make_sweep(tmp_path / "root", seeds=2)
    library.sweeps()
    make_sweep(tmp_path / "root", seeds=3)
    sweep = library.sweeps()["mine"]
    assert isinstance(sweep, SweepStatus)
    assert len(sweep.members) == 3


def test_a_sweep_that_is_the_root_has_its_name(tmp_path: Path):
    folder = make_sweep(tmp_path / "root", seeds=1)
    assert list(Library(folder).sweeps()) == ["mine"]


def test_a_damaged_sweep_does_not_hide_the_others(tmp_path: Path):
    make_sweep(tmp_path / "root", seeds=2)
    (tmp_path / "root" / "other" / "sweep").mkdir(parents=True)
    (tmp_path / "root" / "other" / "sweep" / "record.json").write_text("no")
    found = Library(tmp_path / "root").sweeps()
    assert isinstance(found["other"], Unreadable)
    assert isinstance(found["mine"], SweepStatus)


def test_columns_of_numbers_are_sorted_as_numbers(tmp_path: Path):
    make_sweep(tmp_path / "root", seeds=1)
    (sweep,) = Library(tmp_path / "root").sweeps().values()
    assert isinstance(sweep, SweepStatus)
    low, high = (replace(sweep.members[0], evaluation={"mean_return": score}) for score in (98.6, 7_820.0))
    assert row_of(low)["last score as a number"] < row_of(high)["last score as a number"]


def test_figures_of_a_sweep_are_hidden_while_it_is_unreadable(tmp_path: Path):
    from nicegui import Client, ui
    from nicegui.page import page

    from atari_dqn.dashboard.pages.sweeps import _Card

    make_sweep(tmp_path / "root", seeds=2)
    (sweep,) = Library(tmp_path / "root").sweeps().values()
    with Client(page("")) as client:
        card = _Card("mine")
        card.show(sweep)
        card.show(Unreadable("damaged"))
        shown = [
            each.text for each in client.elements.values() if isinstance(each, ui.label) and each.visible
        ]
    assert shown == ["mine", "damaged"]


def test_sweep_without_a_running_run_has_no_speed(tmp_path: Path):
    from atari_dqn.dashboard.pages.sweeps import speed_text

    make_sweep(tmp_path / "root", seeds=1)
    (sweep,) = Library(tmp_path / "root").sweeps().values()
    assert isinstance(sweep, SweepStatus)
    assert speed_text(sweep.totals) == ""
    running = replace(sweep.totals, states={"running": 1}, frames_per_second=2000.0, seconds_left=90.0)
    assert speed_text(running) == "2k frames/s, 1m 30s left"
