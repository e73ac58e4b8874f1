"""Format the tables of the HTML page of a comparison."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from html import escape

from atari_dqn.compare.atari100k_scores import Atari100kScore
from atari_dqn.compare.comparison import Comparison, GroupResult
from atari_dqn.compare.group import Method
from atari_dqn.compare.references import ComparedReference
from atari_dqn.compare.statistics import Estimate
from atari_dqn.formatting import count, score

_ESTIMATES = ("mean", "median", "iqm")


def scores(results: Sequence[GroupResult]) -> str:
    """Format the scores of the groups of one game."""
    rows = []
    for result in results:
        last = result.last
        n = f"{last.n}" if not last.absent else f"{last.n} of {last.n + len(last.absent)}"
        quartiles = " to ".join(map(score, last.quartiles)) if last.quartiles else "–"
        estimates = [_estimate(last.estimates.get(name), mark=last.mark) for name in _ESTIMATES]
        frames = count(last.env_frames) if last.n else "–"
        best = _estimate(result.best.estimates.get("mean"), mark=result.best.mark)
        name = _name(result.group.method) + _contrast(result)
        rows.append([name, n, frames, *estimates, quartiles, best, _digests(result)])
    titles = ("group", "n", "frames", "mean", "median", "IQM", "quartiles", "best (a maximum)", "protocol")
    return _table(titles, rows)


def times(results: Sequence[GroupResult]) -> str:
    """Format the frames and hours to a score; empty if no group has such a score."""
    rows = [
        [
            _name(result.group.method),
            score(time.score),
            f"{time.reached} of {time.runs}",
            count(time.median_frames) if math.isfinite(time.median_frames) else "not yet",
            f"{time.median_hours:,.2f}" if math.isfinite(time.median_hours) else "–",
        ]
        for result in results
        if (time := result.time_to_score) is not None
    ]
    return _table(("group", "to score", "reached", "median frames", "median hours"), rows) if rows else ""


def references(results: Sequence[GroupResult]) -> str:
    """Format the published scores of one game; empty if there are none."""
    rows = [_reference(result.group.method, each) for result in results for each in result.references]
    titles = ("group", "score", "published", "its seeds", "verdict", "by", "differs in")
    return _table(titles, rows) if rows else ""


def published(results: Sequence[GroupResult]) -> str:
    """Format the published Atari 100k scores of one game; empty if there are none."""
    rows = [_published(result, each) for result in results for each in result.atari100k]
    titles = (
        "group",
        "mean",
        "Atari 100k, published",
        "score",
        "human-normalised",
        "sourced",
        "in our interval",
    )
    return _table(titles, rows) if rows else ""


def over_games(comparison: Comparison) -> Iterator[str]:
    """Yield the tables over games, with their titles, as HTML."""
    if comparison.aggregates:
        table = comparison.human_table
        yield f"<h2>Human-normalised</h2><p>0 is random, 1 is the human score of the table {table}.</p>"
        yield _table(
            ("group", "games", "n", "IQM", "mean", "median", "optimality gap"),
            [
                [_name(each.method), escape(", ".join(each.games)), str(each.n)]
                + [_estimate(each.estimates[name], 3) for name in ("iqm", "mean", "median", "optimality_gap")]
                for each in comparison.aggregates
            ],
        )
    if comparison.improvements:
        yield "<h2>Probability of improvement</h2>"
        yield _table(
            ("group", "over", "games", "probability"),
            [
                [
                    _name(each.method),
                    _name(each.over),
                    escape(", ".join(each.games)),
                    _estimate(each.probability, 2),
                ]
                for each in comparison.improvements
            ],
        )


def _reference(method: Method, each: ComparedReference) -> list[str]:
    reference = each.reference
    spread = "–"
    if reference.lowest is not None and reference.highest is not None:
        spread = f"{score(reference.lowest)} to {score(reference.highest)}, n = {reference.n}"
    measure = " (training games)" if each.measure == "training" else ""
    by = f"{reference.study.title}: {reference.agent} at {reference.frames_text}{measure}"
    verdict = f'<span class="verdict {each.verdict.replace(" ", "-")}">{each.verdict or "–"}</span>'
    return [
        _name(method),
        each.score_text,
        score(reference.mean),
        spread,
        verdict,
        escape(by),
        escape(", ".join(reference.differences)),
    ]


def _published(result: GroupResult, each: Atari100kScore) -> list[str]:
    return [
        _name(result.group.method),
        _estimate(result.last.estimates.get("mean"), mark=result.last.mark),
        escape(each.column.title),
        score(each.figure.mean),
        "–" if each.normalised is None else f"{each.normalised:.3f}",
        each.column.sourced,
        "–" if each.inside is None else "yes" if each.inside else "no",
    ]


def _contrast(result: GroupResult) -> str:
    """Format the comparison of a group with an earlier one as a line below its name."""
    found = result.contrast
    return "" if found is None else f'<div class="contrast">{escape(str(found))}</div>'


def _digests(result: GroupResult) -> str:
    return ", ".join(f"<code>{escape(digest)}</code>" for digest in result.last.protocol_digests) or "–"


def _name(method: Method) -> str:
    return f"{escape(method.label)} <small>{escape(method.track_label)}</small>"


def _estimate(estimate: Estimate | None, decimals: int | None = None, *, mark: str = "") -> str:
    if estimate is None:
        return "–"
    interval = estimate.interval
    bounds = (
        f"<small>[{_number(interval.low, decimals)}, {_number(interval.high, decimals)}]</small>"
        if interval
        else ""
    )
    return _number(estimate.value, decimals) + mark + bounds


def _number(value: float, decimals: int | None) -> str:
    return score(value) if decimals is None else f"{value:.{decimals}f}"


def _table(titles: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Format a table; the cells are HTML already."""
    head = "".join(f"<th>{escape(title)}</th>" for title in titles)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
