"""Folders that are no run directories though they belong to runs: of tunes, of sweeps and for model hubs."""

from __future__ import annotations

from pathlib import Path

from atari_dqn.files.atomic import exists, is_file

TUNE_RECORD, TUNE_RUNS = "tune.json", "runs"
"""Names in the folder of a tune: its record, and the folder of its run directories."""
SWEEP_RECORD = Path("sweep/record.json")
"""Path in the folder of a sweep."""
HUB_ARCHIVE = "agent.dqn"
"""The archive in a folder for a model hub, which has the spec of a run but is none."""


def is_tune(path: Path) -> bool:
    """Return whether a folder holds a tune."""
    return is_file(path / TUNE_RECORD)


def tune_text(path: Path) -> str:
    """Return why the folder of a tune stands for no runs, and which folder does."""
    return f"{path} is the folder of a tune; name that of its runs: {path / TUNE_RUNS}"


def what_it_is(path: Path) -> str:
    """Say what a folder holds that is no run, and what to name instead; empty for any other folder."""
    if is_tune(path):
        return tune_text(path)
    if is_file(path / SWEEP_RECORD):
        return f"{path} is the folder of a sweep; name one of its runs, or go on with all: dqn sweep {path}"
    if exists(path / HUB_ARCHIVE):
        return f"{path} is a folder for a model hub; name its archive: {path / HUB_ARCHIVE}"
    return ""
