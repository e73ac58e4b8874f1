"""Runs side by side."""

import sys
from collections.abc import Callable

import pytest

from atari_dqn.cli import main


@pytest.fixture
def dqn(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    """Runs a command as its program does; returns its exit code and what it wrote as errors."""

    def run(*arguments: object) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["dqn", *map(str, arguments)])
        try:
            main()
        except SystemExit as ending:
            return int(ending.code or 0), capfd.readouterr().err
        return 0, capfd.readouterr().err

    return run
