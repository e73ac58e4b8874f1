"""A raised budget is on disk before training continues, so that a kill right after does not undo it."""

from collections.abc import Callable
from pathlib import Path

import pytest
from power_cut import CutAt, PowerCut
from tiny import CPU, FEW_STEPS, run

from atari_dqn.run.directory import RunDirectory
from atari_dqn.run.tailing.status import RunStatus
from atari_dqn.telemetry.columns import TABLES
from atari_dqn.telemetry.events import Event, Notice
from atari_dqn.train import launch, run_session

BEFORE, AFTER = 640, 800


class CutWhenResumed:
    """A view that cuts the power at a notice."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def handle(self, event: Event) -> None:
        if isinstance(event, Notice) and event.kind == self.kind:
            raise PowerCut

    def close(self) -> None:
        pass


def cut_at(path: Path, step: int) -> None:
    with pytest.raises(PowerCut):
        run(path, f"training.total_frames={BEFORE}", views=[CutAt(step)])


def extend_and_cut(path: Path, kind: str = "extended") -> None:
    with pytest.raises(PowerCut):
        launch.resume(RunDirectory.open(path), device=CPU, views=[CutWhenResumed(kind)], total_frames=AFTER)


def resume(path: Path) -> dict:
    return launch.resume(RunDirectory.open(path), device=CPU, views=[], total_frames=None)


def tables(path: Path) -> dict[str, bytes]:
    return {name: (path / f"{name}.csv").read_bytes() for name in TABLES if name != "throughput_log"}


@pytest.fixture(scope="module")
def whole(tiny_run: Callable[..., Path]) -> Path:
    return tiny_run(f"training.total_frames={AFTER}")


# step 50: before the first checkpoint; step 150: after it
@pytest.mark.slow
@pytest.mark.parametrize("step", [50, 150])
def test_raised_budget_of_a_run_outlives_a_kill_right_after(tmp_path: Path, step: int, whole: Path) -> None:
    cut_at(tmp_path / "run", step)
    extend_and_cut(tmp_path / "run")
    assert resume(tmp_path / "run")["env_frames"] == AFTER
    assert tables(tmp_path / "run") == tables(whole)


@pytest.mark.slow
@pytest.mark.fault("H02")
def test_raised_budget_of_a_finished_run_outlives_a_kill_right_after(tmp_path: Path) -> None:
    run(tmp_path / "run", f"training.total_frames={BEFORE}")
    extend_and_cut(tmp_path / "run")
    assert resume(tmp_path / "run")["env_frames"] == AFTER


@pytest.mark.slow
def test_budget_is_on_disk_before_it_is_reported(tmp_path: Path) -> None:
    cut_at(tmp_path / "run", 150)
    extend_and_cut(tmp_path / "run", "checkpoint")
    assert resume(tmp_path / "run")["env_frames"] == AFTER


def test_run_that_is_followed_has_the_raised_budget_though_a_kill_came_before_the_notice(
    tmp_path: Path,
) -> None:
    cut_at(tmp_path / "run", 150)
    extend_and_cut(tmp_path / "run", "checkpoint")
    with pytest.raises(PowerCut):
        launch.resume(RunDirectory.open(tmp_path / "run"), device=CPU, views=[CutAt(0)], total_frames=None)
    status = RunStatus(tmp_path / "run")
    status.refresh()
    assert status.total_frames == AFTER


def test_summary_of_the_budget_before_does_not_end_a_raised_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_power(*_: object) -> None:
        raise PowerCut

    path = tmp_path / "run"
    run(path, *FEW_STEPS)
    with monkeypatch.context() as patch:
        patch.setattr(run_session, "write_json_atomically", no_power)
        with pytest.raises(PowerCut):
            launch.resume(RunDirectory.open(path), device=CPU, views=[], total_frames=120)
    assert resume(path)["env_frames"] == 120
