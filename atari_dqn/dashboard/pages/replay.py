"""Replay: its contents and the transitions sampled from it, over time."""

from __future__ import annotations

import re
from functools import partial

from nicegui import ui

from atari_dqn.dashboard.figures import Figure, figure, line
from atari_dqn.dashboard.layout import by_name, draw_each, one_run, page_layout
from atari_dqn.dashboard.library import Library, RunEntry
from atari_dqn.dashboard.series import series, thinned

_SUFFIX = re.compile("_(priority|age_steps|weight|share|reward_share)$")
"""Endings of column names that the title of a panel contains already."""
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
    with page_layout(library, "/replay") as runs:
        if not runs:
            return
        selected = one_run(runs)
        content = ui.column().classes("w-full")
        show = partial(_show, content)
        selected.on_value_change(lambda: draw_each(by_name(runs, selected.value), show))
        draw_each(runs[:1], show)


def _show(content: ui.column, run: RunEntry) -> None:
    content.clear()
    if not len(series(run, "replay_log", "transitions")[0]):
        with content:
            ui.label("This run has no statistics of its replay yet.")
        return
    with content, ui.grid().classes("w-full grid-cols-1 md:grid-cols-2 replay"):
        for title in PANELS:
            ui.plotly(_figure(run, title)).classes("w-full h-72")


def _figure(run: RunEntry, title: str) -> Figure:
    unit, names = PANELS[title]
    lines = [
        line(*thinned(*series(run, "replay_log", name)), name=_SUFFIX.sub("", name), index=index)
        for index, name in enumerate(names)
    ]
    return figure(lines, x="emulator frames", y=unit, title=title, small=True)
