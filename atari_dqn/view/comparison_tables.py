"""A comparison in a terminal of 80 columns: the groups of each game, references, aggregates and caveats.

The name of a group has a line of its own, so that the figures below it keep their columns.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from atari_dqn.compare.aggregate import Aggregate, Improvement, SharedGames
from atari_dqn.compare.atari100k_scores import Atari100kScore
from atari_dqn.compare.comparison import Comparison, GroupResult
from atari_dqn.compare.group import Method
from atari_dqn.compare.reference.caps import MARK
from atari_dqn.compare.references import ComparedReference
from atari_dqn.compare.statistics import RESAMPLES, Estimate
from atari_dqn.compare.time_to_score import TimeToScore
from atari_dqn.formatting import count, plural, score
from atari_dqn.view.evaluations import VERDICT_STYLES, published_score

_SCORE_WIDTHS = (17, 17, 17, 12, 17)
"""80 in all; the widest entry is an interval of 16 characters as `[-12.3k, -10.1k]`."""
_AGGREGATE_WIDTHS = (20, 20, 20, 20)
_INDENT = 2
_SHOWN_GAMES = 5


def comparison_view(comparison: Comparison) -> RenderableType:
    """Draw a comparison: games, aggregates over games, caveats, protocols."""
    parts: list[RenderableType] = []
    for game in comparison.games:
        parts += _game(comparison, game)
    parts += _over_games(comparison)
    parts += _legend(comparison)
    return Group(*parts)


def _game(comparison: Comparison, game: str) -> Iterator[RenderableType]:
    results = comparison.of_game(game)
    yield from _title(game, "unclipped returns; [95 % intervals]")
    yield _figures(_SCORE_WIDTHS, "mean", "median", "IQM", "quartiles", "best", style="dim")
    for result in results:
        yield _name(result.group.method, *_circumstances(result))
        yield from _scores(result)
        if result.contrast is not None:
            yield _indented(Text(str(result.contrast)))
        if result.time_to_score is not None:
            yield _time_to_score(
                result.time_to_score, result.group.game, is_given=comparison.to_score is not None
            )
        yield from (_reference(each) for each in result.references)
        yield from _published(result.atari100k)


def _circumstances(result: GroupResult) -> Iterator[str]:
    """Yield the number of seeds, the frames of their evaluation and its protocol."""
    last = result.last
    yield f"n = {last.n}" if not last.absent else f"n = {last.n} of {last.n + len(last.absent)}"
    if last.n:
        kinds = sorted({each.kind for each in last.evaluations.values()})
        yield f"{' and '.join(kinds)} evaluation at {count(last.env_frames)}"
        yield f"protocol {', '.join(last.protocol_digests)}"


def _scores(result: GroupResult) -> Iterator[RenderableType]:
    last, best = result.last, result.best
    estimates = [
        *(last.estimates.get(name) for name in ("mean", "median", "iqm")),
        best.estimates.get("mean"),
    ]
    marks = [last.mark] * 3 + [best.mark]
    values = [_value(estimate, mark) for estimate, mark in zip(estimates, marks, strict=True)]
    intervals = [_interval(estimate) for estimate in estimates]
    low, high = map(score, last.quartiles) if last.quartiles else ("-", "")
    yield _figures(_SCORE_WIDTHS, *values[:3], low, values[3])
    if any(intervals) or high:
        yield _figures(_SCORE_WIDTHS, *intervals[:3], high, intervals[3], style="dim")


def _time_to_score(found: TimeToScore, game: str, *, is_given: bool) -> RenderableType:
    whose = "" if is_given else f", the human score on {game},"
    reached = f"reached by {found.reached} of {plural(found.runs, 'seed')}"
    if not math.isfinite(found.median_frames):
        return _indented(Text(f"{score(found.score)}{whose} not yet: {reached}"))
    hours = f" and {found.median_hours:,.2f} hours" if math.isfinite(found.median_hours) else ""
    statistic = "median" if found.reached == found.runs else f"median; {reached}"
    return _indented(
        Text(f"{score(found.score)}{whose} after {count(found.median_frames)} frames{hours} ({statistic})")
    )


def _reference(each: ComparedReference) -> RenderableType:
    reference = each.reference
    verdict = each.verdict or "reference"
    text = Text(verdict, VERDICT_STYLES.get(verdict, "yellow"))
    text.append(f" {published_score(reference)} of {_by(each)}", "default")
    if each.measure == "training":
        text.append(f"; training games here: {each.score_text}")
    elif each.window is not None:
        text.append(f"; here: {each.score_text}")
    if reference.differences:
        text.append(f"; differs in: {', '.join(reference.differences)}", style="yellow")
    return _indented(text)


def _published(columns: Sequence[Atari100kScore]) -> Iterator[RenderableType]:
    if columns:
        yield _indented(Text(_published_line("Atari 100k, published", "mean", "human", "", "ours"), "dim"))
    for each in columns:
        normalised = "-" if each.normalised is None else f"{each.normalised:.3f}"
        verdict = "" if each.inside is None else "inside" if each.inside else "outside"
        line = _published_line(
            each.column.title, score(each.figure.mean), normalised, each.column.sourced, verdict
        )
        yield _indented(Text(line, "dim" if each.column.sourced == "recalled" else ""))


def _published_line(title: str, mean: str, normalised: str, sourced: str, verdict: str) -> str:
    return f"{title:<36}{mean:>10}{normalised:>8}  {sourced:<10}{verdict:>9}"


def _by(each: ComparedReference) -> str:
    reference = each.reference
    seeds = plural(reference.n, "seed") if reference.n else "seeds not stated"
    return f"{reference.agent}, {seeds}, at {reference.frames_text}; {reference.study.title}"


def _over_games(comparison: Comparison) -> Iterator[RenderableType]:
    if comparison.aggregates:
        about = f"0 is random, 1 human ({comparison.human_table}); {_games(comparison.normalised_over)}"
        yield from _title("human-normalised", about)
        yield _figures(_AGGREGATE_WIDTHS, "IQM", "mean", "median", "optimality gap", style="dim")
        for aggregate in comparison.aggregates:
            yield from _aggregate(aggregate)
    if comparison.improvements:
        first = comparison.improvements[0].over.label
        yield from _title("probability of improvement", f"over {first}; {_games(comparison.improved_over)}")
        for improvement in comparison.improvements:
            yield _improvement(improvement)


def _games(shared: SharedGames) -> str:
    """List the games that all methods share, shortened to the first ones."""
    first = ", ".join(shared.games[:_SHOWN_GAMES])
    return f"{first} and {more} more" if (more := len(shared.games) - _SHOWN_GAMES) > 0 else first


def _aggregate(aggregate: Aggregate) -> Iterator[RenderableType]:
    estimates = [aggregate.estimates[name] for name in ("iqm", "mean", "median", "optimality_gap")]
    yield _name(aggregate.method, f"n = {aggregate.n}")
    yield _figures(_AGGREGATE_WIDTHS, *(f"{estimate.value:.3f}" for estimate in estimates))
    intervals = [estimate.interval for estimate in estimates]
    if any(intervals):
        bounds = [f"[{each.low:.3f}, {each.high:.3f}]" if each else "" for each in intervals]
        yield _figures(_AGGREGATE_WIDTHS, *bounds, style="dim")


def _improvement(improvement: Improvement) -> RenderableType:
    probability = improvement.probability
    interval = probability.interval
    shown_interval = f" [{interval.low:.2f}, {interval.high:.2f}]" if interval else ""
    return _name(improvement.method, f"{probability.value:.2f}{shown_interval}")


def _legend(comparison: Comparison) -> Iterator[RenderableType]:
    if comparison.caveats:
        yield from _title("caveats", "")
        yield from (_item(caveat, "▲", "yellow") for caveat in comparison.caveats)
    if comparison.protocols:
        yield from _title("protocols", "")
    yield from (_item(words.short(), digest, "dim") for digest, words in comparison.protocols.items())
    yield Text(
        f"\nn: seeds. Intervals: stratified bootstrap over seeds, percentiles, {RESAMPLES:,} resamples; of "
        "the difference of two means Welch's. IQM: mean of the middle half. Best: mean over seeds of the "
        f"best full evaluation, a maximum and so biased upwards. {MARK}: the frame cap cut games.",
        style="dim",
    )


def _title(title: str, about: str) -> Iterator[RenderableType]:
    yield Text.assemble((f"\n{title}", "bold"), (f"  {about}", "dim"))
    yield Rule(style="dim")


def _item(text: str, mark: str, style: str) -> RenderableType:
    item = Table.grid(padding=(0, 1, 0, 0))
    item.add_row(Text(mark, style=style), Text(text))
    return item


def _name(method: Method, *about: str) -> Text:
    return Text.assemble(
        (method.label, "bold cyan"), (f"  {method.track_label} · {' · '.join(about)}", "dim")
    )


def _figures(widths: Sequence[int], *texts: str, style: str = "") -> RenderableType:
    """Draw a line of figures, each in its column."""
    columns = zip(texts, widths, strict=True)
    return Text("".join(f"{text:>{width}}" for text, width in columns), style=style)


def _indented(text: Text) -> RenderableType:
    return Padding(text, (0, 0, 0, _INDENT))


def _value(estimate: Estimate | None, mark: str) -> str:
    return "-" if estimate is None else score(estimate.value) + mark


def _interval(estimate: Estimate | None) -> str:
    interval = estimate.interval if estimate else None
    return "" if interval is None else f"[{_end(interval.low)}, {_end(interval.high)}]"


def _end(value: float) -> str:
    """Format an interval's end in few characters: from 10,000 in thousands."""
    return count(value) if abs(value) >= 10_000 else score(value)
