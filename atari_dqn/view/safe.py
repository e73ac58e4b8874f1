"""Whatever is printed with rich made safe to show: names and texts of files cannot steer the terminal."""

from __future__ import annotations

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment

from atari_dqn.formatting import printable_lines


class Safe:
    """Draws a renderable with the characters that steer a terminal escaped; rich's own styles stay."""

    def __init__(self, renderable: RenderableType) -> None:
        self._renderable = renderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield what the renderable does, each text made safe to show."""
        for segment in console.render(self._renderable, options):
            text = segment.text if segment.control else printable_lines(segment.text)
            yield Segment(text, segment.style, segment.control)
