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

OnProgress = Callable[[str, int, int], None]
"""Called with the activity, the number of finished parts and their total."""


def is_shown() -> bool:
    """Return whether the error stream is a terminal, on which the bar is shown."""
    return Console(stderr=True).is_terminal


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
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=None)
        yield lambda activity, done, total: bar.update(
            task, description=activity, completed=done, total=total
        )
