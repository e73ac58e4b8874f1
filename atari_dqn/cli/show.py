"""The view of one run: on the terminal and in its title, or as lines where there is none."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager

from rich.console import Console

from atari_dqn.compare.reference.agents import subject_of
from atari_dqn.spec.loader import ResolvedSpec
from atari_dqn.telemetry.events import Sink
from atari_dqn.view.live import LiveView, suits_live_view
from atari_dqn.view.plain import PlainView
from atari_dqn.view.title import TitleView


@contextmanager
def shown(
    name: str,
    resolved: ResolvedSpec,
    total_frames: int,
    *,
    plain: bool,
    standing: Callable[[], str] | None = None,
) -> Iterator[Sequence[Sink]]:
    """Yield the views that show a run until the block ends. `standing` is of a run that is only watched."""
    console = Console()
    title = f"{name}  track {resolved.track_label}  seed {resolved.spec.seed}"
    view: LiveView | PlainView = (
        LiveView(
            title=title,
            total_frames=total_frames,
            subject=subject_of(resolved.spec),
            console=console,
            standing=standing,
        )
        if suits_live_view(console) and not plain
        else PlainView(title=title, total_frames=total_frames, stream=sys.stdout, standing=standing)
    )
    with closing(TitleView(name=name, total_frames=total_frames, console=console)) as in_title, closing(view):
        yield [view, in_title]
