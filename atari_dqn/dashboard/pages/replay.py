"""Replay: what is in it and what is drawn from it, over time."""

from __future__ import annotations

import re
from functools import partial

from nicegui import ui

from atari_dqn.dashboard.figures import Figure, figure, line
from atari_dqn.dashboard.frame import by_name, draw_each, frame, one_run
from atari_dqn.dashboard.library import Library, RunEntry
from atari_dqn.dashboard.series import series, thinned

_SUFFIX = re.compile("_(priority|age_steps|weight|share|reward_share)$")
"""What the title of a panel says already."""
PANELS = {
    "priorities": (
        "p^α",
        ("p10_priority", "median_priority", "mean_priority", "p90_priority", "max_priority"),
    ),
    "ages": ("agent steps", ("mean_age_steps", "median_age_steps", "max_age_steps")),
    "importance weights and β": ("", ("min_weight", "mean_weight", "beta")),
    "effective sample size": ("share of the replay", ("effective_share",)),
    "contents": ("transitions", ("transitions",)),
    "rewards and endings": (
        "share",
        ("terminal_share", "negative_reward_share", "zero_reward_share", "positive_reward_share"),
    ),
}
"""Title → unit and columns of replay_log."""


def replay_page(library: Library) -> None:
    """Draw the page."""
    with frame(library, "/replay") as runs:
        if not runs:
            return
        chosen = one_run(runs)
        place = ui.column().classes("w-full")
        show = partial(_show, place)
        chosen.on_value_change(lambda: draw_each(by_name(runs, chosen.value), show))
        draw_each(runs[:1], show)


def _show(place: ui.column, run: RunEntry) -> None:
    place.clear()
    if not len(series(run, "replay_log", "transitions")[0]):
        with place:
            ui.label("This run has no report of its replay yet.")
        return
    with place, ui.grid(columns=2).classes("w-full replay"):
        for title in PANELS:
            ui.plotly(_figure(run, title)).classes("w-full h-72")


def _figure(run: RunEntry, title: str) -> Figure:
    unit, names = PANELS[title]
    lines = [
        line(*thinned(*series(run, "replay_log", name)), name=_SUFFIX.sub("", name), place=place)
        for place, name in enumerate(names)
    ]
    return figure(lines, x="emulator frames", y=unit, title=title, small=True)
