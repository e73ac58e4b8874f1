"""A recording keeps what return was expected of the best action, and the panel shows its distribution."""

from pathlib import Path

import numpy as np
import pytest
from tiny import CPU, run

from atari_dqn.frozen import load_frozen
from atari_dqn.record.drawing import BACKGROUND, GREEDY, Canvas
from atari_dqn.record.panel import Now, Panel
from atari_dqn.record.recording import Look, Recording, load_recording, recording_bytes, save_recording
from atari_dqn.record.returns import binned
from atari_dqn.record_checkpoint import record_checkpoint
from atari_dqn.traces import Returns, Tracer

SHORT = (
    "training.total_frames=260", "evaluation.full_period_frames=9999", "evaluation.light_period_frames=9999",
    "evaluation.epsilon=0.3",
)  # fmt: skip
KINDS = {
    "none": (),
    "c51": (
        "toggles.distribution=c51", "distribution.num_atoms=11", "distribution.v_min=-2",
        "distribution.v_max=3",
    ),
    "qr_dqn": ("toggles.distribution=qr_dqn", "distribution.num_quantiles=8"),
}  # fmt: skip


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Recording]:
    found = {}
    for kind, overrides in KINDS.items():
        path = tmp_path_factory.mktemp("outputs") / kind
        run(path, *SHORT, *overrides)
        found[kind] = record_checkpoint(
            load_frozen(path, CPU), look=Look(scale=2), on_progress=lambda *_: None
        )
    return found


def returns_of(recording: Recording) -> Returns:
    returns = recording.games[0].trace.returns
    assert returns is not None
    return returns


def masses(*rows: list[float]) -> np.ndarray:
    return np.array(rows, np.float16)


def points(*rows: list[float]) -> np.ndarray:
    return np.array(rows, np.float32)


@pytest.mark.parametrize("kind", ["c51", "qr_dqn"])
def test_mean_of_what_is_recorded_is_the_best_actions_value(recordings: dict, kind: str) -> None:
    returns = returns_of(recordings[kind])
    mean = (returns.points * returns.mass.astype(np.float32)).sum(axis=1)
    best = recordings[kind].games[0].trace.values.max(axis=1)
    np.testing.assert_allclose(mean, best, atol=2e-2)


def test_network_that_predicts_values_alone_has_no_returns_in_its_recording(recordings: dict) -> None:
    assert recordings["none"].games[0].trace.returns is None
    assert b"return_mass" not in recording_bytes(recordings["none"])


@pytest.mark.parametrize("kind", ["c51", "qr_dqn"])
def test_returns_survive_their_file(recordings: dict, kind: str, tmp_path: Path) -> None:
    save_recording(recordings[kind], tmp_path / "a.json")
    found = load_recording(tmp_path / "a.json")
    np.testing.assert_array_equal(returns_of(found).points, returns_of(recordings[kind]).points)
    np.testing.assert_array_equal(returns_of(found).mass, returns_of(recordings[kind]).mass)


def test_what_never_changes_is_kept_once(recordings: dict) -> None:
    steps = len(recordings["c51"].games[0].trace.actions)
    assert returns_of(recordings["c51"]).points.shape == (1, 11)
    assert returns_of(recordings["c51"]).mass.shape == (steps, 11)
    assert returns_of(recordings["qr_dqn"]).points.shape == (steps, 8)
    assert returns_of(recordings["qr_dqn"]).mass.shape == (1, 8)


def test_row_that_comes_back_after_another_is_not_lost() -> None:
    tracer = Tracer()
    rows = [np.array(row, np.float32) for row in ([1.0, 2.0], [1.0, 3.0], [1.0, 2.0])]
    for row in rows:
        tracer.decided(
            0, action=0, explored=False, values=row, returns=(row, np.array([0.5, 0.5], np.float32))
        )
    returns = tracer.trace(0).returns
    assert returns is not None
    np.testing.assert_array_equal(returns.points, np.stack(rows))


def test_axis_covers_the_atoms_that_have_mass() -> None:
    atoms = points([-2.0, -1.0, 0.0, 1.0, 2.0])
    found = binned(Returns(points=atoms, mass=masses([0, 0, 0.5, 0.5, 0], [0, 0, 1, 0, 0])), steps=2)
    assert (found.low, found.high) == (-0.5, 1.5)
    np.testing.assert_array_equal(found.share, [[1.0, 1.0], [1.0, 0.0]])


def test_edge_mass_is_that_of_the_lowest_and_the_highest_atom() -> None:
    found = binned(Returns(points=points([0.0, 1.0, 2.0]), mass=masses([0.125, 0.375, 0.5])), steps=1)
    assert found.edge_mass is not None
    assert found.edge_mass.tolist() == [[0.125, 0.5]]


def test_quantiles_are_counted_in_bins_of_one_width() -> None:
    # three of four quantiles in the lower half of the range, one above
    quantiles = points([0.0, 0.1, 0.2, 4.0])
    found = binned(Returns(points=np.repeat(quantiles, 3, axis=0), mass=masses([0.25] * 4)), steps=3)
    np.testing.assert_allclose(found.share[0], [1.0, 0.0, 0.0, 1 / 3])
    assert found.edge_mass is None


def test_quantiles_that_are_all_equal_can_be_shown() -> None:
    found = binned(Returns(points=points([1.0, 1.0], [1.0, 1.0]), mass=masses([0.5, 0.5])), steps=2)
    assert found.low < found.high
    assert np.isfinite(found.share).all()


def test_picture_has_a_column_for_each_step_and_high_returns_above() -> None:
    mass = masses([1, 0, 0], [0, 1, 0], [0, 0, 1])
    picture = binned(Returns(points=points([0.0, 1.0, 2.0]), mass=mass), steps=3).picture(1, 2)
    brightness = picture.astype(int).sum(axis=2)
    np.testing.assert_array_equal(brightness.argmax(axis=0), [1, 0])
    assert picture[2, 0].tolist() == list(BACKGROUND)


def test_panel_shows_the_present_distribution_as_bars(recordings: dict) -> None:
    panels = {}
    for kind in ("none", "c51"):
        recording = recordings[kind]
        panel = Panel(recording, recording.games[0], place=1, size=(630, 416))
        panels[kind] = panel.picture(Now(step=2, score=0.0, lives=0, frame=12)).copy()
    bars = {kind: (panel[410:535, 340:380] == GREEDY).all(axis=2).mean() for kind, panel in panels.items()}
    assert bars["c51"] > 0.2 > bars["none"]


def test_picture_is_stretched_to_its_rectangle() -> None:
    canvas = Canvas.blank(width=1260, height=1260)
    canvas.picture(10, 20, 110, 120, np.full((2, 2, 3), 200, np.uint8))
    lit = (canvas.pixels() == 200).all(axis=2)
    assert lit[40:240, 20:220].all()
    assert lit.sum() == 200 * 200
