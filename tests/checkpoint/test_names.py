"""Names of checkpoints, and files that are named for one."""

from pathlib import Path

import pytest

from atari_dqn.run.checkpoint.names import checkpoint_name, files_of_step, named_step


@pytest.mark.parametrize("step", [0, 999_999_999, 1_000_000_000])
def test_name_gives_its_step_back(step: int) -> None:
    assert named_step(checkpoint_name(step)) == step


@pytest.mark.parametrize("name", ["step_12", "step_000000012_light", "step_", "latest"])
def test_other_names_have_no_step(name: str) -> None:
    assert named_step(name) == -1


def test_files_of_a_step_are_not_those_of_ten_times_its_number(tmp_path: Path) -> None:
    for name in ("step_100000000.mp4", "step_100000000_light.mp4", "step_1000000000.mp4"):
        (tmp_path / name).touch()
    found = files_of_step(tmp_path, 100_000_000, ".mp4")
    assert sorted(path.name for path in found) == ["step_100000000.mp4", "step_100000000_light.mp4"]
