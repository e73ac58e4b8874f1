"""A recording contains the value distributions of the greedy action, which the panel shows."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tiny import CPU, run

from atari_dqn.evaluation.frozen_agent import load_frozen
from atari_dqn.evaluation.traces import BestReturn, BestReturns, Tracer
from atari_dqn.record.binned_returns import binned
from atari_dqn.record.checkpoint_recording import record_checkpoint
from atari_dqn.record.drawing import BACKGROUND, GREEDY, LINE, Canvas, bins_picture
from atari_dqn.record.panel import Panel, PanelState
from atari_dqn.record.recording import (
    Recording,
    VideoOptions,
    load_recording,
    recording_bytes,
    save_recording,
)

SHORT = (
    "training.total_frames=260", "replay.prefill_steps=60",
    "evaluation.full_period_frames=9999", "evaluation.light_period_frames=9999",
    "evaluation.epsilon=0.3",
)  # fmt: skip
KINDS = {
    "none": (),
    "c51": (
        "toggles.distribution=c51", "distribution.num_atoms=11", "distribution.v_min=-2",
        "distribution.v_max=3",
    ),
    "qr_dqn": ("toggles.distribution=qr_dqn", "distribution.num_quantiles=80"),
    "iqn": ("toggles.distribution=iqn", "distribution.num_policy_fractions=8"),
}  # fmt: skip


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Recording]:
    found = {}
    for kind, overrides in KINDS.items():
        path = tmp_path_factory.mktemp("outputs") / kind
        run(path, *SHORT, *overrides)
        found[kind] = record_checkpoint(
            load_frozen(path, CPU), options=VideoOptions(scale=2), on_progress=lambda *_: None
        )
    return found


def returns_of(recording: Recording) -> BestReturns:
    returns = recording.games[0].trace.best_returns
    assert returns is not None
    return returns


def traced(*steps: tuple[list[float], list[float]], atoms: bool) -> BestReturns:
    """Return the traced points and masses of decisions with these points and masses."""
    tracer = Tracer()
    for points, mass in steps:
        best_return = BestReturn(
            points=np.array(points, np.float32), mass=np.array(mass, np.float32), atoms=atoms
        )
        tracer.record(0, action=0, explored=False, values=np.zeros(2, np.float32), best_return=best_return)
    returns = tracer.trace(0).best_returns
    assert returns is not None
    return returns


def on_atoms(atoms: list[float], *masses: list[float]) -> BestReturns:
    return traced(*((atoms, mass) for mass in masses), atoms=True)


def of_quantiles(*quantiles: list[float]) -> BestReturns:
    return traced(*((row, [1 / len(row)] * len(row)) for row in quantiles), atoms=False)


@pytest.mark.parametrize("kind", ["c51", "qr_dqn", "iqn"])
def test_mean_of_what_is_recorded_is_the_best_actions_value(recordings: dict, kind: str) -> None:
    returns = returns_of(recordings[kind])
    mean = (returns.points * returns.mass.astype(np.float32)).sum(axis=1)
    best = recordings[kind].games[0].trace.values.max(axis=1)
    np.testing.assert_allclose(mean, best, atol=2e-2)


def test_network_that_predicts_values_alone_has_no_returns_in_its_recording(recordings: dict) -> None:
    assert recordings["none"].games[0].trace.best_returns is None
    assert b"best_returns" not in recording_bytes(recordings["none"])


@pytest.mark.parametrize("kind", ["c51", "qr_dqn", "iqn"])
def test_returns_survive_their_file(recordings: dict, kind: str, tmp_path: Path) -> None:
    save_recording(recordings[kind], tmp_path / "a.json")
    found = load_recording(tmp_path / "a.json")
    np.testing.assert_array_equal(returns_of(found).points, returns_of(recordings[kind]).points)
    np.testing.assert_array_equal(returns_of(found).mass, returns_of(recordings[kind]).mass)


def test_what_never_changes_is_kept_once_and_very_many_quantiles_are_thinned(recordings: dict) -> None:
    shapes = {
        kind: (returns_of(recordings[kind]).points.shape, returns_of(recordings[kind]).mass.shape)
        for kind in ("c51", "qr_dqn", "iqn")
    }
    steps = {kind: len(recordings[kind].games[0].trace.actions) for kind in shapes}
    assert shapes == {
        "c51": ((1, 11), (steps["c51"], 11)),
        "qr_dqn": ((steps["qr_dqn"], 64), (1, 64)),
        "iqn": ((steps["iqn"], 8), (1, 8)),
    }


def test_quantiles_of_a_single_step_are_no_atoms() -> None:
    found = binned(of_quantiles([0.0, 1.0, 5.0]), steps=1)
    assert found.edge_mass is None


def test_axis_covers_the_atoms_that_have_mass() -> None:
    returns = on_atoms([-2.0, -1.0, 0.0, 1.0, 2.0], [0, 0, 0.5, 0.5, 0], [0, 0, 1, 0, 0])
    found = binned(returns, steps=2)
    assert (found.low, found.high) == (-0.5, 1.5)
    np.testing.assert_array_equal(found.share, [[1.0, 1.0], [1.0, 0.0]])


@pytest.mark.parametrize(("mass", "low", "high"), [([1, 0], -1.5, 0.5), ([0, 1], 0.5, 2.5)])
def test_all_mass_on_one_of_two_atoms_can_be_shown(mass: list[float], low: float, high: float) -> None:
    found = binned(on_atoms([-0.5, 1.5], mass), steps=1)
    assert (found.low, found.high) == (low, high)


def test_edge_mass_is_that_of_the_lowest_and_the_highest_atom() -> None:
    found = binned(on_atoms([0.0, 1.0, 2.0], [0.125, 0.375, 0.5]), steps=1)
    assert found.edge_mass is not None
    assert found.edge_mass.tolist() == [[0.125, 0.5]]


def test_quantiles_are_counted_in_bins_of_one_width() -> None:
    # three of four quantiles in the lowest quarter of the range, one in the highest
    found = binned(of_quantiles(*[[0.0, 0.1, 0.2, 4.0]] * 3), steps=3)
    np.testing.assert_allclose(found.share[0], [1.0, 0.0, 0.0, 1 / 3])


def test_quantiles_that_are_all_equal_can_be_shown() -> None:
    found = binned(of_quantiles([1.0, 1.0], [1.0, 1.0]), steps=2)
    assert found.low < found.high
    assert np.isfinite(found.share).all()


def test_picture_has_a_column_for_each_step_and_high_returns_above() -> None:
    bins = binned(on_atoms([0.0, 1.0, 2.0], [1, 0, 0], [0, 1, 0], [0, 0, 1]), steps=3)
    picture = bins_picture(bins.share)
    brightness = picture.astype(int).sum(axis=2)
    np.testing.assert_array_equal(brightness.argmax(axis=0), [2, 1, 0])
    assert picture[0, 0].tolist() == list(BACKGROUND)


def test_panel_shows_the_present_distribution_as_bars(recordings: dict) -> None:
    panels = {}
    for kind in ("none", "c51"):
        recording = recordings[kind]
        panel = Panel(recording, recording.games[0], place=1, size=(630, 416))
        panels[kind] = panel.picture(PanelState(step=2, score=0.0, lives=0, frame=12)).copy()
    # where the bars are, right of the chart
    bars = {kind: (panel[410:535, 340:380] == GREEDY).all(axis=2).mean() for kind, panel in panels.items()}
    assert bars["c51"] > 0.2 > bars["none"]


def test_recording_of_an_older_version_is_shown_as_it_was(recordings: dict, tmp_path: Path) -> None:
    recording = recordings["c51"]
    game = recording.games[0]
    older = replace(recording, games=(replace(game, trace=replace(game.trace, best_returns=None)),))
    save_recording(older, tmp_path / "older.json")
    found = load_recording(tmp_path / "older.json")
    assert found.games[0].trace.best_returns is None
    assert recording_bytes(found) == recording_bytes(older)


@pytest.mark.parametrize(("num_actions", "top"), [(9, 406.0), (18, 456.0)])
def test_chart_is_larger_where_the_actions_leave_room(recordings: dict, num_actions: int, top: float) -> None:
    recording = recordings["c51"]
    names = tuple(f"action{number}" for number in range(num_actions))
    wide = replace(recording, action_names=names)
    panel = Panel(wide, wide.games[0], place=1, size=(630, 416))
    picture = panel.picture(PanelState(step=-1, score=0.0, lives=0, frame=1))
    assert picture[round(top) - 24, 100].tolist() == list(LINE)


def test_picture_is_stretched_to_its_rectangle() -> None:
    canvas = Canvas.blank(width=1260, height=1260)
    canvas.picture(10, 20, 110, 120, np.full((2, 2, 3), 200, np.uint8))
    lit = (canvas.pixels() == 200).all(axis=2)
    assert lit[40:240, 20:220].all()
    assert lit.sum() == 200 * 200
