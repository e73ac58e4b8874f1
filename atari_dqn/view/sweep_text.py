"""A sweep as text: a line for each run, totals, and what failed."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator

from atari_dqn.formatting import count, duration, percentage, printable
from atari_dqn.run.sweep.status import MemberStatus, SweepStatus
from atari_dqn.view.scores import fitting_marked_score
from atari_dqn.view.summary import shortened

_OTHER_COLUMNS = 68
"""Width of all columns but the name and the alerts."""
_NAME_COLUMNS = 16
_ALERTS_COLUMNS = 7
_SCORE_COLUMNS = 8
PIPE_COLUMNS = 110
"""Width of the table where there is no terminal."""
ORDER = ("running", "abandoned", "halted", "damaged", "invalid", "crashed", "stopped", "waiting", "finished")
"""States in the order in which a reader looks for them."""


def heading(columns: int, names: Iterable[str]) -> str:
    """Return the titles of the columns."""
    width = name_width(columns, names)
    numbers = f"{'frames':>8}{'done':>6}{'f/s':>7}{'left':>9}{'score':>10}"
    titles = f"{'run':<{width}} {'state':<9} {'host':<12}{numbers}"
    return f"{titles} alerts" if len(titles) + _ALERTS_COLUMNS <= columns else titles


def name_width(columns: int, names: Iterable[str]) -> int:
    """Return the width of the column of names."""
    longest = max((len(name) for name in names), default=_NAME_COLUMNS)
    return max(_NAME_COLUMNS, min(longest, columns - _OTHER_COLUMNS))


def run_line(each: MemberStatus, width: int) -> str:
    """Format the line of a run."""
    name = shortened(each.member.name, width)
    is_running = each.state == "running"
    share = each.env_frames / max(1, each.total_frames)
    rate = count(each.frames_per_second) if is_running else "-"
    left = duration(each.seconds_left) if is_running else "-"
    alerts = ", ".join([*each.alerts, *([] if each.belongs else ["not in the sweep file any more"])])
    done = percentage(min(1.0, share), decimals=0)
    score = fitting_marked_score(each.evaluation, _SCORE_COLUMNS)
    numbers = f"{count(each.env_frames):>8}{done:>6}{rate:>7}{left:>9}{score:>10}"
    return f"{name:<{width}} {each.state:<9} {printable(each.host)[:11]:<12}{numbers} {alerts}".rstrip()


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
    names = [each.member.name for each in status.members]
    yield heading(columns, names)
    width = name_width(columns, names)
    yield from (run_line(each, width) for each in status.members)
    yield ""
    yield totals_line(status)
    yield from failure_lines(status)


def failure_lines(status: SweepStatus) -> Iterator[str]:
    """Yield for each run that is not tried again the reason, and what the user can do."""
    for each in status.members:
        if each.failure is not None and each.state == each.failure.kind:
            run = status.folder.path / each.member.name
            yield f"{each.member.name} {each.state}: {each.failure.reason}"
            yield f"  {each.failure.remedy(run)}"
            yield f"  its output: {shlex.quote(str(status.folder.output(each.member.name)))}"
