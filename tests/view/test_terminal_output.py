"""Which outputs count as terminals, and what is written to the others."""

import io
from collections.abc import Callable

import pytest
from rich.console import Console

from atari_dqn.telemetry.events import Row
from atari_dqn.view.bar import is_shown
from atari_dqn.view.terminal import suits_live_view
from atari_dqn.view.title import TitleView


class Stream(io.TextIOWrapper):
    """A stream that is a terminal or not."""

    def __init__(self, *, terminal: bool, encoding: str = "utf-8") -> None:
        super().__init__(io.BytesIO(), encoding=encoding)
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


@pytest.fixture(autouse=True)
def xterm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")


@pytest.mark.parametrize(
    ("terminal", "encoding", "suits"),
    [(True, "utf-8", True), (False, "utf-8", False), (True, "ascii", False)],
)
def test_live_view_is_for_terminals_that_know_more_than_ascii(
    terminal: bool, encoding: str, suits: bool
) -> None:
    stream = Stream(terminal=terminal, encoding=encoding)
    assert suits_live_view(Console(file=stream)) is suits


def test_a_file_is_no_terminal_for_a_live_view_though_colours_are_forced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert not suits_live_view(Console(file=Stream(terminal=False)))


def test_a_bar_is_not_shown_in_a_file_though_colours_are_forced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr("sys.stderr", Stream(terminal=False))
    assert not is_shown()


def test_no_title_is_written_to_a_file_though_colours_are_forced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    stream = Stream(terminal=False)
    TitleView(name="run", total_frames=100, console=Console(file=stream))
    stream.flush()
    assert stream.buffer.getvalue() == b""  # type: ignore[attr-defined]


def test_a_terminal_whose_shell_has_another_command_in_the_foreground_has_no_live_view(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stream = Stream(terminal=True)
    stream.fileno = lambda: 0  # type: ignore[method-assign]
    monkeypatch.setattr("os.tcgetpgrp", lambda terminal: 1)
    assert not suits_live_view(Console(file=stream))


def test_a_batch_of_periods_changes_the_title_once(
    monkeypatch: pytest.MonkeyPatch, period: Callable[..., list[Row]]
) -> None:
    stream = Stream(terminal=True)
    title = TitleView(name="run", total_frames=16_000, console=Console(file=stream))
    title.handle_all([row for step in (1000, 2000, 3000) for row in period(step, elapsed_seconds=step)])
    stream.flush()
    written = stream.buffer.getvalue().decode()  # type: ignore[attr-defined]
    assert [part.partition("\x07")[0] for part in written.split("\x1b]0;")[1:]] == ["run", "75% 16m 40s run"]


@pytest.mark.parametrize(("frames", "shown"), [(29_512, "98% run"), (30_024, "100% run")])
def test_a_final_evaluation_is_in_the_title(
    monkeypatch: pytest.MonkeyPatch, row: Callable[..., Row], frames: int, shown: str
) -> None:
    stream = Stream(terminal=True)
    title = TitleView(name="run", total_frames=30_000, console=Console(file=stream))
    title.handle(row("eval_log", env_frames=frames, eval_type="final"))
    stream.flush()
    written = stream.buffer.getvalue().decode()  # type: ignore[attr-defined]
    assert [part.partition("\x07")[0] for part in written.split("\x1b]0;")[1:]] == ["run", shown]
