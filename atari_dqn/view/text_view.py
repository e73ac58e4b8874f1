"""Show text that changes: redrawn in a terminal, or a line for each change where there is no terminal."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TextIO

from rich.console import Console
from rich.text import Text

from atari_dqn.formatting import printable_lines
from atari_dqn.view.suspendable_live import SuspendableLive
from atari_dqn.view.terminal import suits_live_view
from atari_dqn.view.wrapping import MOST_REPORTS, lines_for, report_lines

_PERIOD_SECONDS = 2.0
Screen = Callable[[int, int], Sequence[str]]
"""Returns the lines of a screen of so many columns and rows."""
News = Callable[[], Iterable[str]]
"""Returns a sentence for each change since the last call."""


class TextView(Protocol):
    """Shows text that changes."""

    def report(self, sentence: str) -> None:
        """Show a sentence; may be called from any thread."""
        ...

    def show(self) -> None:
        """Show the present state; may be called as often as one likes."""
        ...

    def close(self) -> None:
        """Show the last state and end the view."""
        ...


def text_view(screen: Screen, news: News, stream: TextIO, *, plain: bool) -> TextView:
    """Return the view that suits the terminal: it shows `screen`, or writes `news` to the stream."""
    console = Console()
    if suits_live_view(console) and not plain:
        return LiveTextView(screen, console)
    return PlainTextView(news, stream)


class LiveTextView:
    """A screen in the terminal, drawn again every two seconds."""

    def __init__(self, screen: Screen, console: Console) -> None:
        self._screen, self._console = screen, console
        self._reports: list[str] = []
        self._at = time.monotonic()
        self._live = SuspendableLive(console=console, get_renderable=self._drawn, auto_refresh=False)
        self._live.start(refresh=True)

    def report(self, sentence: str) -> None:
        """Show a sentence below the screen."""
        self._reports = [*self._reports, sentence][-MOST_REPORTS:]

    def show(self) -> None:
        """Draw the screen again if it is due."""
        if time.monotonic() - self._at >= _PERIOD_SECONDS:
            self._at = time.monotonic()
            self._live.refresh()

    def close(self) -> None:
        """Draw the screen for the last time and leave it in the terminal."""
        self._live.stop()

    def _drawn(self) -> Text:
        columns = self._console.width
        reports = report_lines(self._reports, columns)
        title, *lines = self._screen(columns, self._console.height - len(reports))
        text = Text(title, "dim", no_wrap=True)
        for line in lines:
            text.append(f"\n{printable_lines(line)}", "")
        for line in reports:
            text.append(f"\n{line}", "yellow")
        return text


class PlainTextView:
    """Writes each change as a line."""

    def __init__(self, news: News, stream: TextIO) -> None:
        self._news, self._stream = news, stream
        self.show()

    def report(self, sentence: str) -> None:
        """Write a sentence."""
        for line in lines_for(self._stream, [printable_lines(sentence)]):
            self._stream.write(line + "\n")
        self._stream.flush()

    def show(self) -> None:
        """Write what has changed."""
        for sentence in self._news():
            self.report(sentence)

    def close(self) -> None:
        """Write the last changes."""
        self.show()
