"""Fixtures for comparisons of runs."""

import sys
from collections.abc import Callable

import pytest
from tiny import one_torch_thread

from atari_dqn.cli import main

__all__ = ["one_torch_thread"]


@pytest.fixture
def dqn(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    """Runs a command like the program; returns its exit code and its output on stderr."""

    def run(*arguments: object) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["dqn", *map(str, arguments)])
        try:
            main()
        except SystemExit as ending:
            return int(ending.code or 0), capfd.readouterr().err
        return 0, capfd.readouterr().err

    return run
