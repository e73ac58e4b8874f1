"""Ablations: the ladder of toggles, and the gain of each step with its interval."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from nicegui import ui

from atari_dqn.compare.comparison import GroupResult
from atari_dqn.compare.group import other_differences
from atari_dqn.compare.protocol_differences import obstacles
from atari_dqn.compare.statistics import column, difference
from atari_dqn.dashboard.figures import Figure, bars, figure, intervals
from atari_dqn.dashboard.layout import FAULT, page_layout
from atari_dqn.dashboard.library import Library, RunEntry, toggles_on
from atari_dqn.dashboard.pages.compared import caveat_list, compared, estimate_text
from atari_dqn.dashboard.pages.games import table
from atari_dqn.formatting import shortened
from atari_dqn.view.names import distinct_names

_TITLES = ("step", "toggles", "n", "score", "increment", "over")
_NOTHING = "–"
_SHOWN_KEYS = 2
_LABEL_COLUMNS = 24
"""Longer labels would shrink the chart; the table has them whole."""


def ablations_page(library: Library) -> None:
    """Draw the page."""
    with page_layout(library, "/ablations") as runs:
        if not runs:
            return
        ladders = sorted({(run.game, run.track_label) for run in runs})
        titles = {f"{game}, track {label}": (game, label) for game, label in ladders}
        largest = Counter((run.game, run.track_label) for run in runs).most_common(1)[0][0]
        first = next(title for title, ladder in titles.items() if ladder == largest)
        selected = ui.select(list(titles), value=first, label="game and track").classes("w-64").props("dense")
        ui.label(
            "A step of the ladder is all seeds of one spec. Its increment is over the most similar step with "
            "fewer toggles: one under the same protocol, then one that differs in the fewest other keys, "
            "then in the fewest toggles. If the interval contains 0, no difference is shown. 95 % intervals "
            "over seeds: of a score bootstrap percentiles, of an increment Welch's."
        ).classes("text-sm opacity-80")
        content = ui.column().classes("w-full")
        selected.on_value_change(lambda: _show(content, runs, *titles[selected.value]))
        _show(content, runs, *titles[first])


def _show(content: ui.column, runs: list[RunEntry], game: str, track_label: str) -> None:
    content.clear()
    of_track = [run for run in runs if (run.game, run.track_label) == (game, track_label)]
    comparison, faults = compared(of_track)
    ladder = rungs(comparison.results) if comparison else []
    with content:
        if ladder:
            ui.plotly(ladder_figure(ladder)).classes("w-full h-96")
            table(ladder_rows(ladder), _TITLES).classes("w-full ladder")
        else:
            ui.label("No such run has a final evaluation yet.")
        for fault in faults:
            ui.label(f"left out: {fault}").classes(FAULT)
        if comparison:
            caveat_list(comparison)


def ladder_figure(ladder: list[GroupResult]) -> Figure:
    """Draw a bar for each rung, with its interval if it has one."""
    means = {rung.group.method.label: rung.last.estimates["mean"] for rung in ladder}
    names = distinct_names(means, _LABEL_COLUMNS)
    known = {names[label]: (mean.value, mean.interval) for label, mean in means.items() if mean.interval}
    drawn = [
        bars(names, [mean.value for mean in means.values()]),
        intervals(
            list(known),
            [value for value, _ in known.values()],
            [interval.low for _, interval in known.values()],
            [interval.high for _, interval in known.values()],
        ),
    ]
    return figure(drawn, x="", y="mean score", title=ladder[0].group.game)


def rungs(results: tuple[GroupResult, ...]) -> list[GroupResult]:
    """Sort the groups that have a score by their number of toggles."""
    return sorted(
        (each for each in results if each.last.n), key=lambda each: len(toggles_on(each.group.runs[0].values))
    )


def ladder_rows(ladder: list[GroupResult]) -> list[list[str]]:
    """Format a row for each rung; one that adds toggles to no earlier one has no increment."""
    return [
        [
            f"{rung.group.method.label} {rung.group.method.track_label}",
            ", ".join(_toggles(rung)) or "none",
            str(rung.last.n),
            estimate_text(rung.last.estimates["mean"], rung.last.mark),
            *_step(_below(rung, ladder[:place]), rung),
        ]
        for place, rung in enumerate(ladder)
    ]


def _below(rung: GroupResult, earlier: Sequence[GroupResult]) -> GroupResult | None:
    """Return the most similar of the earlier rungs whose toggles this one has, and more; None without any.

    It is one whose score can be compared, if there is one, and of these the one that differs in the fewest
    other keys; then the last one, which has the most toggles.
    """
    fewer = [each for each in reversed(earlier) if {*_toggles(each)} < {*_toggles(rung)}]
    return min(fewer, key=lambda each: (bool(_obstacle(each, rung)), len(_others(each, rung))), default=None)


def _others(below: GroupResult, above: GroupResult) -> list[str]:
    """List the keys, except toggles, in which two rungs differ."""
    return other_differences(above.group.runs[0], below.group.runs[0])


def _obstacle(below: GroupResult, above: GroupResult) -> str:
    """Return why the scores of two rungs are not compared; empty if they are."""
    if not (below.last.comparable and above.last.comparable):
        return "the frame cap cut games"
    return "; ".join(obstacles((above.group, above.last), (below.group, below.last)))


def _step(below: GroupResult | None, above: GroupResult) -> tuple[str, str]:
    """Format the gain of a step, or why the two scores are not compared, and the rung that it is over."""
    if below is None:
        return _NOTHING, _NOTHING
    others, obstacle = _others(below, above), _obstacle(below, above)
    more = f"; also differs in {shortened(others, _SHOWN_KEYS)}" if others else ""
    over = below.group.method.label + more
    if obstacle:
        return f"not compared: {obstacle}", over
    return estimate_text(difference(column(above.last.values), column(below.last.values))), over


def _toggles(result: GroupResult) -> list[str]:
    return toggles_on(result.group.runs[0].values)
