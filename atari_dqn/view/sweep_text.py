"""A sweep as text: a line for each run, totals, and what failed."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence

from atari_dqn.formatting import count, duration, percentage, printable
from atari_dqn.run.sweep.failures import Failure
from atari_dqn.run.sweep.status import MemberStatus, SweepStatus
from atari_dqn.view.names import distinct_names
from atari_dqn.view.scores import fitting_marked_score

_NAME_COLUMNS = 16
_WIDTHS = {"state": 9, "host": 11, "frames": 8, "done": 5, "f/s": 6, "left": 8, "score": 9}
"""Widths of the columns between the name and the alerts."""
_LEFT_ALIGNED = ("state", "host")
_DISPENSABLE = ("host", "frames", "f/s", "left")
"""Columns that a narrow table does without, the first one first."""
_ALERTS = " alerts"
_SCORE_COLUMNS = 8
ORDER = ("running", "abandoned", "halted", "damaged", "invalid", "crashed", "stopped", "waiting", "finished")
"""States in the order in which a reader looks for them."""


def table_lines(members: Sequence[MemberStatus], columns: int) -> list[str]:
    """Format a table of so many columns: the titles, then a line for each run. Alerts may be wider."""
    titles = list(_WIDTHS)
    for title in _DISPENSABLE:
        if _NAME_COLUMNS + _total(titles) > columns:
            titles.remove(title)
    room = columns - _total(titles) - len(_ALERTS)
    names = distinct_names([each.member.name for each in members], max(_NAME_COLUMNS, room))
    width = max([_NAME_COLUMNS, *map(len, names.values())])
    heading = _row("run", width, {title: title for title in titles})
    lines = [heading + _ALERTS if len(heading + _ALERTS) <= columns else heading]
    for each in members:
        entries = {title: entry for title, entry in _entries(each).items() if title in titles}
        lines.append(f"{_row(names[each.member.name], width, entries)} {_alerts(each)}".rstrip())
    return lines


def _total(titles: Sequence[str]) -> int:
    """Compute the width of columns, each with a space in front."""
    return sum(1 + _WIDTHS[title] for title in titles)


def _row(name: str, width: int, entries: Mapping[str, str]) -> str:
    aligned = (
        f"{entry:{'<' if title in _LEFT_ALIGNED else '>'}{_WIDTHS[title]}}"
        for title, entry in entries.items()
    )
    return " ".join([f"{name:<{width}}", *aligned])


def _entries(each: MemberStatus) -> dict[str, str]:
    is_running = each.state == "running"
    share = min(1.0, each.env_frames / max(1, each.total_frames))
    return {
        "state": each.state,
        "host": printable(each.host)[: _WIDTHS["host"]],
        "frames": count(each.env_frames),
        "done": percentage(share, decimals=0),
        "f/s": count(each.frames_per_second) if is_running else "-",
        "left": duration(each.seconds_left) if is_running else "-",
        "score": fitting_marked_score(each.evaluation, _SCORE_COLUMNS),
    }


def _alerts(each: MemberStatus) -> str:
    return ", ".join([*each.alerts, *([] if each.belongs else ["not in the sweep file any more"])])


def totals_line(status: SweepStatus) -> str:
    """Format the sums over all runs on one line."""
    totals = status.totals
    states = ", ".join(f"{totals.states[state]} {state}" for state in ORDER if state in totals.states)
    done = percentage(totals.env_frames / max(1, totals.total_frames))
    rate = f", {count(totals.frames_per_second)} frames/s" if totals.frames_per_second else ""
    left = f", {duration(totals.seconds_left)} left" if totals.frames_per_second else ""
    frames = f"{done} of {count(totals.total_frames)} frames"
    return f"{status.record.name}: {states or 'no runs'}; {frames}{rate}{left}"


def status_lines(status: SweepStatus, columns: int) -> Iterator[str]:
    """Yield the whole table, the totals and the failures."""
    yield from table_lines(status.members, columns)
    yield ""
    yield totals_line(status)
    yield from failure_lines(status)


def failure_text(failure: Failure) -> str:
    """Describe a failure: `halted by the gate loss: loss is nan`, `invalid: no space left on device`."""
    begins_with_kind = failure.reason.startswith(f"{failure.kind} ")
    return failure.reason if begins_with_kind else f"{failure.kind}: {failure.reason}"


def failure_lines(status: SweepStatus) -> Iterator[str]:
    """Yield for each run that is not tried again the reason, and what the user can do."""
    for each in status.members:
        if each.failure is not None and each.state == each.failure.kind:
            run = status.folder.path / each.member.name
            yield f"{each.member.name} {failure_text(each.failure)}"
            yield f"  {each.failure.remedy(run)}"
            yield f"  its output: {shlex.quote(str(status.folder.output(each.member.name)))}"
