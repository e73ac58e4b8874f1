"""A command runs this package, whatever lies in the current folder."""

import subprocess
from pathlib import Path

import pytest

from atari_dqn.envs import processes
from atari_dqn.envs.processes import own_command


def test_module_of_this_package_runs_in_a_folder_with_modules_of_its_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "atari_dqn").mkdir()
    for name in ("atari_dqn/__init__.py", "atari_dqn/formatting.py", "random.py"):
        (tmp_path / name).write_text("raise SystemExit(9)")
    monkeypatch.chdir(tmp_path)
    assert subprocess.run(own_command("atari_dqn.formatting"), check=False).returncode == 0


def test_package_of_the_current_folder_is_found_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(processes.__file__).parents[2])
    assert "-P" not in own_command("atari_dqn")


def test_command_starts_though_the_current_folder_may_not_be_searched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object) -> bool:
        raise PermissionError(13, "permission denied")

    monkeypatch.setattr(Path, "samefile", refuse)
    assert own_command("atari_dqn")[1:] == ["-P", "-m", "atari_dqn"]
