"""The number of frames that docs/results/README.md gives."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "docs/results"))
import frames


def test_page_has_the_number_of_frames() -> None:
    assert frames.sentence() in (frames.RESULTS / "README.md").read_text(encoding="utf-8")


def test_run_on_two_pages_counts_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for page, last in (("a", 100), ("b", 100), ("c", 300)):
        (tmp_path / page).mkdir()
        (tmp_path / page / "runs.csv").write_text(f"run,spec_digest,started\nmine,{last},2026-11-28T04:00\n")
        (tmp_path / page / "evaluations.csv").write_text(f"run,env_frames\nmine,50\nmine,{last}\n")
    monkeypatch.setattr(frames, "RESULTS", tmp_path)
    monkeypatch.setattr(frames, "FIRST_COMMANDS", ())
    monkeypatch.setattr(frames, "LOGS", ())
    assert frames.sentence() == "2 runs of 0.0 million emulator frames in all"
    assert [sum(runs.values()) for runs in frames.by_folder().values()] == [100, 100, 300]
