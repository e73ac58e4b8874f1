"""Fixtures for comparisons of runs."""

import sys
from collections.abc import Callable

import pytest

from atari_dqn.cli.app import main


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
