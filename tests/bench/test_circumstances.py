"""Where and when a benchmark was measured, as its JSON says it."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
import hardware
from hardware import circumstances

from atari_dqn.machine.contention import CoreTimes

ROOT = Path(__file__).parents[2]


def core_times(*, at: float, used: float, own: float) -> CoreTimes:
    return CoreTimes(at=at, usable_cores=2, allowed_cores=2, used=used, own=own, threads={})


def test_other_programs_are_counted_from_the_import_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hardware, "_BEGAN", core_times(at=100.0, used=50.0, own=20.0))
    monkeypatch.setattr(hardware, "read_core_times", lambda: core_times(at=110.0, used=65.0, own=30.0))
    assert circumstances()["others_cores"] == 0.5


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a checkout")
def test_commit_is_that_of_the_package() -> None:
    git = circumstances()["git"]
    assert isinstance(git, dict)
    assert len(git["commit"]) == 40
