"""Escape control characters in output of rich: names and texts of files cannot control the terminal."""

from __future__ import annotations

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment

from atari_dqn.formatting import printable_lines


class Safe:
    """Draw a renderable with control characters escaped; rich's own styles stay."""

    def __init__(self, renderable: RenderableType) -> None:
        self._renderable = renderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the segments of the renderable with their text escaped."""
        for segment in console.render(self._renderable, options):
            text = segment.text if segment.control else printable_lines(segment.text)
            yield Segment(text, segment.style, segment.control)
