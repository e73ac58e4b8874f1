"""Format a comparison as one HTML page that needs no network: tables, interactive curves, videos."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any
from urllib.parse import quote

from atari_dqn import __version__
from atari_dqn.compare.comparison import Comparison
from atari_dqn.compare.output.html_tables import over_games, published, references, scores, times
from atari_dqn.compare.output.learning_curves import LearningCurve, group_curves, published_curves
from atari_dqn.compare.output.palette import line_style
from atari_dqn.compare.reference.studies import studies as known_studies
from atari_dqn.compare.statistics import RESAMPLES
from atari_dqn.files.atomic import plain
from atari_dqn.formatting import printable
from atari_dqn.run.folders import WEB_PAGE


def page(comparison: Comparison, *, folder: Path) -> str:
    """Format the page. `folder`: the folder of the page, which the links to videos are relative to."""
    return Template(_asset("page.html")).substitute(
        title=escape(f"dqn compare: {', '.join(comparison.games)}"),
        style=_asset("page.css"),
        script=_asset("page.js"),
        data=_script_safe(_curves(comparison)),
        games="\n".join(_game(comparison, game) for game in comparison.games),
        over_games="".join(over_games(comparison)),
        warnings=_list(comparison.caveats),
        protocols=_list(
            f"{digest} — {protocol.short()}" for digest, protocol in comparison.protocols.items()
        ),
        sources=_list(_sources(comparison)),
        web_pages="".join(_web_pages(comparison, folder)),
        videos="\n".join(_videos(comparison, folder)) or "<p>The runs have no videos.</p>",
        resamples=f"{RESAMPLES:,}",
        version=escape(__version__),
        date=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    )


def _game(comparison: Comparison, game: str) -> str:
    results = comparison.of_game(game)
    chart = f'<figure class="chart" data-game="{escape(game)}"></figure>'
    tables = scores(results) + times(results) + references(results) + published(results)
    return f"<section><h2>{escape(game)}</h2>{chart}{tables}</section>"


def _curves(comparison: Comparison) -> dict[str, Any]:
    """Return the curves that the script of the page draws, by game."""
    drawn = {}
    for game in comparison.games:
        results = comparison.of_game(game)
        groups = [
            {**_points(curve), **asdict(line_style(place)), "seeds": _seeds(curve.seeds)}
            for place, curve in enumerate(group_curves(results))
        ]
        published = [{**_points(curve), "same": curve.same_protocol} for curve in published_curves(results)]
        drawn[game] = {"groups": groups, "published": published}
    return drawn


def _points(curve: LearningCurve) -> dict[str, Any]:
    arrays = {"frames": curve.frames, "mean": curve.mean, "low": curve.low, "high": curve.high}
    return {"label": curve.label, **{name: array.tolist() for name, array in arrays.items()}}


def _seeds(seeds: dict[int, tuple[Any, Any]]) -> list[dict[str, Any]]:
    return [
        {"seed": seed, "frames": frames.tolist(), "values": values.tolist()}
        for seed, (frames, values) in seeds.items()
    ]


def _videos(comparison: Comparison, folder: Path) -> Iterator[str]:
    for name, run in _runs(comparison):
        for video in sorted([*run.glob("checkpoints/step_*/*.mp4"), *run.glob("videos/*.mp4")]):
            link, title = _link(video, folder), f"{name}: {escape(printable(video.stem))}"
            yield (
                f'<figure><video controls preload="none" src="{link}"></video>'
                f'<figcaption><a href="{link}">{title}</a></figcaption></figure>'
            )


def _web_pages(comparison: Comparison, folder: Path) -> Iterator[str]:
    for name, run in _runs(comparison):
        if (run / WEB_PAGE).is_file():
            yield f'<p><a href="{_link(run / WEB_PAGE, folder)}">{name}: play back with q-values</a></p>'


def _runs(comparison: Comparison) -> Iterator[tuple[str, Path]]:
    """Yield the name, as HTML, and the path of every run."""
    for result in comparison.results:
        for run in result.group.runs:
            yield escape(f"{result.group.game}, {result.group.method.label}, seed {run.seed}"), run.path


def _link(path: Path, folder: Path) -> str:
    return quote(os.fsencode(os.path.relpath(path, folder)))


def _sources(comparison: Comparison) -> Iterator[str]:
    studies = {
        each.reference.study.name: each.reference.study for r in comparison.results for each in r.references
    } | {
        each.column.study: known_studies()[each.column.study]
        for r in comparison.results
        for each in r.atari100k
    }
    for study in studies.values():
        commit = f" at {study.commit[:9]}" if study.commit else ""
        notes = f" {' '.join(study.notes)}" if study.notes else ""
        yield f"{study.title}. {study.source}{commit}; {study.licence}.{notes}"


def _list(items: Iterator[str] | tuple[str, ...]) -> str:
    return "".join(f"<li>{escape(item)}</li>" for item in items) or "<li>none</li>"


def _script_safe(data: Any) -> str:
    """Encode data as JSON that cannot close the script element around it."""
    return json.dumps(plain(data), ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


def _asset(name: str) -> str:
    return (files("atari_dqn.compare.output") / name).read_text(encoding="utf-8")
