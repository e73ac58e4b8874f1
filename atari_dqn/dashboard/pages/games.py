"""Game comparison: evaluation curves of every group, its scores with intervals, and published figures."""

from __future__ import annotations

from nicegui import ui

from atari_dqn.compare.comparison import GroupResult
from atari_dqn.dashboard.frame import frame
from atari_dqn.dashboard.library import Library, RunEntry
from atari_dqn.dashboard.pages.compared import compared, curves_figure, told
from atari_dqn.formatting import count, score

_TITLES = ("group", "n", "frames", "mean", "median", "IQM", "best (a maximum)", "published")


def games_page(library: Library) -> None:
    """Draw the page."""
    with frame(library, "/games") as runs:
        if not runs:
            return
        games = sorted({run.game for run in runs})
        chosen = ui.select(games, value=runs[0].game, label="game").classes("w-64").props("dense")
        place = ui.column().classes("w-full")
        chosen.on_value_change(lambda: _show(place, runs, chosen.value))
        _show(place, runs, chosen.value)


def _show(place: ui.column, runs: list[RunEntry], game: str) -> None:
    place.clear()
    comparison, faults = compared([run for run in runs if run.game == game])
    with place:
        if comparison is not None:
            ui.plotly(curves_figure(comparison.results, game)).classes("w-full h-[28rem]")
            table([_row(result) for result in comparison.results], _TITLES).classes("w-full scores")
            for warning in comparison.warnings:
                ui.label(f"beware: {warning}").classes("text-sm text-amber-700")
        for fault in faults:
            ui.label(f"left out: {fault}").classes("text-sm text-red-600 break-all")


def table(rows: list[list[str]], titles: tuple[str, ...]) -> ui.table:
    """Return a table of text."""
    columns = [{"name": title, "label": title, "field": title, "align": "left"} for title in titles]
    cells = [dict(zip(titles, row, strict=True)) | {"id": place} for place, row in enumerate(rows)]
    return ui.table(columns=columns, rows=cells, row_key="id").props("dense flat")


def _row(result: GroupResult) -> list[str]:
    last, method = result.last, result.group.method
    beside = result.references[0] if result.references else None
    published = "–"
    if beside is not None:
        differs = (
            f" (other protocol: {', '.join(beside.reference.differences)})"
            if beside.reference.differences
            else ""
        )
        published = f"{score(beside.reference.mean)} by {beside.reference.study.title}{differs}"
    estimates = [told(last.estimates.get(name), last.mark) for name in ("mean", "median", "iqm")]
    frames = count(last.env_frames) if last.n else "–"
    name = f"{method.label} {method.track_label}"
    best = told(result.best.estimates.get("mean"), result.best.mark)
    return [name, str(last.n), frames, *estimates, best, published]
