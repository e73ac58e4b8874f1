"""Compare runs for the pages; runs that cannot be read are listed with the reason."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
from nicegui import ui

from atari_dqn.compare.comparison import Comparison, GroupResult, LeftOut, compare_readable
from atari_dqn.compare.output.learning_curves import group_curves, published_curves
from atari_dqn.compare.reference.studies import DEFAULT_HUMAN_TABLE
from atari_dqn.compare.statistics import Estimate
from atari_dqn.dashboard.figures import Figure, figure, line, published_line, shaded
from atari_dqn.dashboard.library import RunEntry
from atari_dqn.formatting import printable, score
from atari_dqn.run.tailing.isolation import Unreadable, attempt


def compared(runs: Sequence[RunEntry]) -> tuple[Comparison | None, list[str]]:
    """Compare the runs that can be compared, and list for each other run why it cannot."""
    return _compared(tuple((run.name, run.path, run.written) for run in runs))


@lru_cache(maxsize=16)
def _compared(runs: tuple[tuple[str, Path, float], ...]) -> tuple[Comparison | None, list[str]]:
    """Compare runs; the times of their last write are part of the cache's key."""
    names = {path: name for name, path, _ in runs}
    found = attempt(partial(compare_readable, list(names), human_table=DEFAULT_HUMAN_TABLE))
    if isinstance(found, Unreadable):
        return None, [found.reason]
    return found, [f"{names[each.path]}: {_reason(each)}" for each in found.left_out]


def _reason(left_out: LeftOut) -> str:
    """Format the reason why a run cannot be compared, without its path; its name comes first."""
    return printable(str(left_out.error).replace(f"{left_out.path}/", ""))


def caveat_list(comparison: Comparison) -> None:
    """List the caveats of the scores; what several groups share is one line."""
    with ui.column().classes("gap-1 caveats"):
        for caveat in comparison.merged_caveats:
            ui.label(f"▲ {caveat}").classes("text-sm text-amber-700 dark:text-amber-400")


def curves_figure(results: Sequence[GroupResult], title: str) -> Figure:
    """Draw the evaluation curves of groups, and published ones in grey."""
    traces = []
    for index, curve in enumerate(group_curves(results)):
        frames = curve.frames.astype(np.float64)
        traces += [
            shaded(frames, curve.low, curve.high, index=index),
            line(frames, curve.mean, name=curve.label, index=index),
        ]
    for index, published in enumerate(published_curves(results)):
        frames = published.frames.astype(np.float64)
        traces.append(published_line(frames, published.mean, name=published.label, index=index))
    return figure(traces, x="emulator frames", y="return of an evaluation", title=title)


def estimate_text(estimate: Estimate | None, mark: str = "") -> str:
    """Format an estimate with its mark and its interval."""
    if estimate is None:
        return "–"
    value, interval = score(estimate.value) + mark, estimate.interval
    return value + (f" [{score(interval.low)}, {score(interval.high)}]" if interval else "")
