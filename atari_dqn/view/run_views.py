"""The views of one run: the live view and the terminal's title, or lines where there is no terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

from rich.console import Console

from atari_dqn.compare.reference.agents import subject_of
from atari_dqn.spec.exploration import exploration_of, mixed_epsilon
from atari_dqn.spec.loader import ResolvedSpec
from atari_dqn.telemetry.events import Sink
from atari_dqn.view.live import LiveView
from atari_dqn.view.plain import PlainView
from atari_dqn.view.terminal import suits_live_view
from atari_dqn.view.title import TitleView


@contextmanager
def run_views(
    name: str,
    resolved: ResolvedSpec,
    total_frames: int,
    *,
    plain: bool,
    state_text: Callable[[], str] | None = None,
) -> Iterator[tuple[Sink, TitleView]]:
    """Yield the views that show a run until the block ends: that of its figures, and the terminal's title.

    `state_text` describes the present state of a run of another process, which is read from its files.
    """
    console = Console()
    title = f"{name}  track {resolved.track_label}  seed {resolved.spec.seed}"
    mix = mixed_epsilon(exploration_of(resolved.spec))
    view: LiveView | PlainView = (
        LiveView(
            title=title,
            total_frames=total_frames,
            subject=subject_of(resolved.spec),
            console=console,
            state_text=state_text,
            mixed_epsilon=mix,
        )
        if suits_live_view(console) and not plain
        else PlainView(
            title=title,
            total_frames=total_frames,
            stream=sys.stdout,
            state_text=state_text,
            mixed_epsilon=mix,
        )
    )
    with (
        closing(TitleView(name=name, total_frames=total_frames, console=console)) as title_view,
        closing(view),
    ):
        yield view, title_view
