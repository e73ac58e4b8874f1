"""Videos: a run's checkpoints on a slider, each with its video and its evaluation."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from urllib.parse import quote

from nicegui import ui

from atari_dqn.clock import steps_to_frames
from atari_dqn.compare.reference.caps import marked_score
from atari_dqn.dashboard.layout import by_name, draw_each, one_run, page_layout
from atari_dqn.dashboard.library import Library, RunEntry
from atari_dqn.dashboard.series import columns
from atari_dqn.formatting import plural, score
from atari_dqn.run.folders import WEB_PAGE
from atari_dqn.run.tailing.isolation import attempt
from atari_dqn.telemetry.sinks.video_frames import video_step, videos_of

MEDIA, WEB_PAGES = "/media", "/web_pages"


def videos_page(library: Library) -> None:
    """Draw the page."""
    with page_layout(library, "/videos") as runs:
        for run in runs:
            if library.inside(library.relative(run.path / WEB_PAGE)) is not None:
                ui.link(f"{run.name}: play back with q-values", _web_page(library, run)).classes("web-page")
        found = {run.name: attempt(partial(playable, library, run)) for run in runs}
        with_videos = [run for run in runs if isinstance(found[run.name], list) and found[run.name]]
        if not with_videos:
            ui.label("No run has a video yet. `dqn record RUN_DIR` makes one.").classes("text-lg")
            return
        selected = one_run(with_videos)
        player = ui.column().classes("w-full")
        show = partial(_show, library, player)
        selected.on_value_change(lambda: draw_each(by_name(with_videos, selected.value), show))
        draw_each(with_videos[:1], show)


def playable(library: Library, run: RunEntry) -> list[Path]:
    """List a run's videos that lie below the root."""
    return [video for video in videos_of(run.path) if library.inside(library.relative(video)) is not None]


def _show(library: Library, player: ui.column, run: RunEntry) -> None:
    videos = playable(library, run)
    player.clear()
    with player:
        slider = ui.slider(min=0, max=max(1, len(videos) - 1), value=len(videos) - 1, step=1)
        slider.props("markers snap aria-label=checkpoint").classes("w-full checkpoint-slider")
        label = ui.label().classes("text-lg checkpoint")
        screen = ui.column().classes("w-full")

        def move() -> None:
            video = videos[min(int(slider.value), len(videos) - 1)]
            label.set_text(caption(run, video))
            screen.clear()  # a new element each time, because an existing one keeps its first source
            with screen:
                picture = ui.video(_address(library, video), autoplay=True, loop=True, muted=True)
                picture.classes("w-full max-w-3xl")

        slider.on_value_change(move)
        move()


def caption(run: RunEntry, video: Path) -> str:
    """Format the frames of a video's checkpoint, and the last evaluation up to then."""
    step, skip = video_step(video), run.values.get("env.frame_skip", 1)
    frames = steps_to_frames(step, frame_skip=int(skip))
    names = ("env_frames", "mean_return", "std_return", "episodes", "frame_caps")
    table = columns(run.path / "eval_log.csv", names)
    before = [at for at, env_frames in enumerate(table["env_frames"]) if env_frames <= frames]
    if not before:
        return f"{frames:,} frames, not evaluated by then"
    evaluation = {name: float(column[before[-1]]) for name, column in table.items()}
    spread = f" ± {score(evaluation['std_return'])}" if evaluation["episodes"] > 1 else ""
    games = plural(int(evaluation["episodes"]), "game")
    return f"{frames:,} frames: evaluation {marked_score(evaluation)}{spread} over {games}"


def _web_page(library: Library, run: RunEntry) -> str:
    return f"{WEB_PAGES}/{quote(library.relative(run.path / WEB_PAGE))}"


def _address(library: Library, video: Path) -> str:
    return f"{MEDIA}/{quote(library.relative(video))}"
