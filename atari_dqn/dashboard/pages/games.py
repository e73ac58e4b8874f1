"""Game comparison: evaluation curves of every group, its scores with intervals, and published figures."""

from __future__ import annotations

from nicegui import ui

from atari_dqn.compare.comparison import GroupResult
from atari_dqn.compare.references import ComparedReference
from atari_dqn.dashboard.layout import FAULT, page_layout
from atari_dqn.dashboard.library import Library, RunEntry
from atari_dqn.dashboard.pages.compared import caveat_list, compared, curves_figure, estimate_text
from atari_dqn.formatting import count, score

_TITLES = ("group", "n", "frames", "mean", "median", "IQM", "best (a maximum)", "published")


def games_page(library: Library) -> None:
    """Draw the page."""
    with page_layout(library, "/games") as runs:
        if not runs:
            return
        games = sorted({run.game for run in runs})
        selected = ui.select(games, value=runs[0].game, label="game").classes("w-64").props("dense")
        content = ui.column().classes("w-full")
        selected.on_value_change(lambda: _show(content, runs, selected.value))
        _show(content, runs, selected.value)


def _show(content: ui.column, runs: list[RunEntry], game: str) -> None:
    content.clear()
    comparison, faults = compared([run for run in runs if run.game == game])
    with content:
        if comparison is not None:
            ui.plotly(curves_figure(comparison.results, game)).classes("w-full h-[28rem]")
            table([_row(result) for result in comparison.results], _TITLES).classes("w-full scores")
            caveat_list(comparison)
        for fault in faults:
            ui.label(f"left out: {fault}").classes(FAULT)


def table(rows: list[list[str]], titles: tuple[str, ...]) -> ui.table:
    """Create a table of text."""
    columns = [{"name": title, "label": title, "field": title, "align": "left"} for title in titles]
    entries = [dict(zip(titles, row, strict=True)) | {"id": index} for index, row in enumerate(rows)]
    return ui.table(columns=columns, rows=entries, row_key="id").props("dense flat wrap-cells")


def _row(result: GroupResult) -> list[str]:
    last, method = result.last, result.group.method
    published = _published(result.references[0]) if result.references else "–"
    estimates = [estimate_text(last.estimates.get(name), last.mark) for name in ("mean", "median", "iqm")]
    frames = count(last.env_frames) if last.n else "–"
    name = f"{method.label} {method.track_label}"
    best = estimate_text(result.best.estimates.get("mean"), result.best.mark)
    return [name, str(last.n), frames, *estimates, best, published]


def _published(each: ComparedReference) -> str:
    """Format a published score; one of training games with the score of the training games here."""
    reference = each.reference
    own = ""
    if each.measure == "training":
        own = f"; training games, here {each.score_text}"
    elif each.window is not None:
        own = f"; here {each.score_text}"
    differs = f" (other protocol: {', '.join(reference.differences)})" if reference.differences else ""
    return f"{score(reference.mean)} by {reference.study.title}{own}{differs}"
