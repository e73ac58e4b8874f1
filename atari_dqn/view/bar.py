"""A progress bar on the error stream, so that a pipe receives the result alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)

from atari_dqn.view.suspendable_live import SuspendableLive
from atari_dqn.view.terminal import is_in_foreground, is_on_terminal

OnProgress = Callable[[str, int, int], None]
"""Called with the activity, the number of finished parts and their total."""


def is_shown() -> bool:
    """Return whether the error stream is a terminal, on which the bar is shown."""
    return _is_shown_on(Console(stderr=True))


@contextmanager
def progress_bar(*, width: int, percent: bool = False) -> Iterator[OnProgress]:
    """Show a bar on a terminal until the block ends, with the activity in a column of `width`.

    After the bar comes the number of finished parts or, with `percent`, the percentage.
    """
    console = Console(stderr=True)
    columns = (
        TextColumn(f"{{task.description:<{width}}}"),
        BarColumn(),
        TaskProgressColumn() if percent else MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    progress = Progress(*columns, console=console, disable=not _is_shown_on(console))
    progress.live = SuspendableLive(console=console, transient=True, get_renderable=progress.get_renderable)
    with progress as bar:
        task = bar.add_task("", total=None)
        yield lambda activity, done, total: bar.update(
            task, description=activity, completed=done, total=total
        )


def _is_shown_on(console: Console) -> bool:
    return is_on_terminal(console) and is_in_foreground(console)
