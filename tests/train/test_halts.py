from pathlib import Path

from atari_dqn.run.directory import RunDirectory
from atari_dqn.train.health import HealthMonitor


def test_command_that_goes_on_after_a_halt_can_be_pasted(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path / "my run")
    (run.checkpoints / "step_000000300").mkdir(parents=True)
    (run.checkpoints / "latest").symlink_to("step_000000300")
    watch = object.__new__(HealthMonitor)
    watch._run, watch._wait_for_checkpoint = run, lambda: None
    assert f"`dqn resume '{tmp_path}/my run'` continues from it" in watch._remedy()
