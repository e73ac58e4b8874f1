"""Wrong input of `dqn train` and `dqn resume` is refused before torch is imported, which takes seconds."""

import subprocess
import sys
from pathlib import Path

import pytest

WITHOUT_TORCH = """
import sys

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            sys.exit("torch was imported")

sys.meta_path.insert(0, Finder())
from atari_dqn.cli import main
main()
"""
GOOD = 'track = "A"\ngame = "pong"\nseed = 1\n'


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["train", "absent.toml"], "absent.toml: no such file"),
        (["train", "good.toml", "--set", "learner.batch_sise=32"], 'did you mean "learner.batch_size"'),
        (["train", "good.toml", "--set", "learner.batch_size=0"], "learner.batch_size"),
        (["train", "good.toml", "--set", "replay.prefill_steps=2_000_000"], "replay.capacity_steps"),
        (["train", "good.toml", "--device", "abacus"], "--device: found 'abacus'"),
        (["train", "good.toml", "--sink", "smoke"], "smoke"),
        (["train", "good.toml", "--run-dir", "folder"], "exists and is never overwritten"),
        (["train", "good.toml", "--plan", "--device", "abacus"], "--device: found 'abacus'"),
        (["resume", "absent"], "'absent': not found"),
        (["resume", "folder"], "is not a run directory"),
        (["resume", "folder", "--device", "abacus"], "--device: found 'abacus'"),
        (["resume", "folder", "--threads", "1000000"], "--threads: found 1000000, expected at most"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_input_is_refused_without_torch(arguments: list[str], says: str, tmp_path: Path) -> None:
    (tmp_path / "good.toml").write_text(GOOD)
    (tmp_path / "folder").mkdir()
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH, *arguments],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert says in done.stderr
    assert done.returncode == 2
