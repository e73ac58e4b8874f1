"""Ablations: the ladder of toggles, and the gain of each step with its interval."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from nicegui import ui

from atari_dqn.compare.comparison import GroupResult
from atari_dqn.compare.protocol_differences import obstacles
from atari_dqn.compare.statistics import column, difference
from atari_dqn.dashboard.figures import Figure, bars, figure, intervals
from atari_dqn.dashboard.layout import FAULT, page_layout
from atari_dqn.dashboard.library import Library, RunEntry, toggles_on
from atari_dqn.dashboard.pages.compared import caveat_list, compared, estimate_text
from atari_dqn.dashboard.pages.games import table

_TITLES = ("step", "toggles", "n", "score", "increment over the nearest step with fewer toggles")


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
            "A step of the ladder is all seeds of one spec. If the interval of its increment contains 0, no "
            "difference is shown. 95 % intervals over seeds: of a score bootstrap percentiles, of an "
            "increment Welch's."
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
    known = {name: (mean.value, mean.interval) for name, mean in means.items() if mean.interval}
    drawn = [
        bars(list(means), [mean.value for mean in means.values()]),
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
    increments = [_increment(_below(rung, ladder[:place]), rung) for place, rung in enumerate(ladder)]
    return [
        [
            f"{rung.group.method.label} {rung.group.method.track_label}",
            ", ".join(_toggles(rung)) or "none",
            str(rung.last.n),
            estimate_text(rung.last.estimates["mean"], rung.last.mark),
            increment,
        ]
        for rung, increment in zip(ladder, increments, strict=True)
    ]


def _below(rung: GroupResult, earlier: Sequence[GroupResult]) -> GroupResult | None:
    """Return the last of the earlier rungs whose toggles this one has, and more; None if there is none."""
    return next((each for each in reversed(earlier) if {*_toggles(each)} < {*_toggles(rung)}), None)


def _increment(below: GroupResult | None, above: GroupResult) -> str:
    """Format the gain of a step, or why the two scores are not compared."""
    if below is None:
        return "–"
    if not (below.last.comparable and above.last.comparable):
        return "not compared: the frame cap cut games"
    differences = obstacles((above.group, above.last), (below.group, below.last))
    if differences:
        return f"not compared: {'; '.join(differences)}"
    return estimate_text(difference(column(above.last.values), column(below.last.values)))


def _toggles(result: GroupResult) -> list[str]:
    return toggles_on(result.group.runs[0].values)
