"""The views of a running sweep: a live table, or a line for each change where there is no terminal."""

from __future__ import annotations

import time
from collections.abc import Collection
from typing import Protocol, TextIO

from rich.console import Console
from rich.text import Text

from atari_dqn.compare.reference.caps import marked_score
from atari_dqn.formatting import plural, printable_lines
from atari_dqn.run.sweep.status import FAILED, MemberStatus, SweepStatus
from atari_dqn.view.suspendable_live import SuspendableLive
from atari_dqn.view.sweep_text import ORDER, failure_text, table_lines, totals_line
from atari_dqn.view.terminal import suits_live_view
from atari_dqn.view.wrapping import MOST_REPORTS, lines_for, report_lines, wrapped_lines

_LIVE_SECONDS, _PLAIN_SECONDS = 2.0, 5.0
_TOTALS_SECONDS = 60.0
_OTHER_LINES = 5
"""The heading, the number of runs that are not shown, the line of the cursor, and two to spare."""
_STYLES = {"running": "green", "abandoned": "yellow", "stopped": "yellow"} | dict.fromkeys(FAILED, "bold red")


class SweepView(Protocol):
    """Shows a sweep while it runs."""

    def report(self, sentence: str) -> None:
        """Show a sentence on a run; may be called from any thread."""
        ...

    def show(self, changed: Collection[str]) -> None:
        """Show the present status; `changed` names the runs whose files may have changed."""
        ...

    def close(self) -> None:
        """End the view."""
        ...


def sweep_view(status: SweepStatus, stream: TextIO, *, plain: bool) -> SweepView:
    """Return the view that suits the terminal."""
    console = Console()
    if suits_live_view(console) and not plain:
        return LiveSweepView(status, console)
    return PlainSweepView(status, stream)


class _Refreshing:
    """Refreshes a status at most once in a period, with all runs that have changed since the last time."""

    def __init__(self, status: SweepStatus, period_seconds: float) -> None:
        self.status = status
        self._period_seconds, self._at = period_seconds, -float("inf")
        self._changed: set[str] = set()
        status.refresh()

    def is_due(self, changed: Collection[str]) -> bool:
        """Refresh the status if the period has passed; return whether it has."""
        self._changed.update(changed)
        if time.monotonic() - self._at < self._period_seconds:
            return False
        self.status.refresh(self._changed)
        self._changed.clear()
        self._at = time.monotonic()
        return True


class LiveSweepView:
    """A table in the terminal: first the runs that run or have failed, as many as there is room for."""

    def __init__(self, status: SweepStatus, console: Console) -> None:
        self._refreshing, self._console = _Refreshing(status, _LIVE_SECONDS), console
        self._reports: list[str] = []
        self._live = SuspendableLive(console=console, get_renderable=self._drawn, auto_refresh=False)
        self._live.start(refresh=True)

    def report(self, sentence: str) -> None:
        """Show a sentence below the table."""
        self._reports = [*self._reports, sentence][-MOST_REPORTS:]

    def show(self, changed: Collection[str]) -> None:
        """Draw the table again if it is due."""
        if self._refreshing.is_due(changed):
            self._live.refresh()

    def close(self) -> None:
        """Draw the table for the last time and leave it in the terminal."""
        self._refreshing.status.refresh()
        self._live.stop()

    def _drawn(self) -> Text:
        status, columns = self._refreshing.status, self._console.width
        members = sorted(status.members, key=lambda each: ORDER.index(each.state))
        totals, reports = wrapped_lines(totals_line(status), columns), report_lines(self._reports, columns)
        shown = members[: max(1, self._console.height - _OTHER_LINES - len(totals) - len(reports))]
        heading, *lines = table_lines(shown, columns)
        text = Text(heading + "\n", "dim", no_wrap=True)
        for each, line in zip(shown, lines, strict=True):
            text.append(line + "\n", _STYLES.get(each.state, ""))
        if (left := len(members) - len(shown)) > 0:
            text.append(f"and {plural(left, 'run')} more\n", "dim")
        text.append("\n".join(totals), "bold")
        for line in reports:
            text.append(f"\n{line}", "yellow")
        return text


class PlainSweepView:
    """Writes a line when the state of a run changes, and the totals each minute."""

    def __init__(self, status: SweepStatus, stream: TextIO) -> None:
        self._refreshing, self._stream = _Refreshing(status, _PLAIN_SECONDS), stream
        self._states = {each.member.name: each.state for each in status.members}
        self._write(totals_line(status))
        self._totals_at = time.monotonic()

    def report(self, sentence: str) -> None:
        """Write a sentence."""
        self._write(sentence)

    def show(self, changed: Collection[str]) -> None:
        """Write what has changed, if it is due."""
        if not self._refreshing.is_due(changed):
            return
        self._write_changes()
        if time.monotonic() - self._totals_at >= _TOTALS_SECONDS:
            self._totals_at = time.monotonic()
            self._write(totals_line(self._refreshing.status))

    def close(self) -> None:
        """Write the last changes and the totals."""
        status = self._refreshing.status
        status.refresh()
        self._write_changes()
        self._write(totals_line(status))

    def _write_changes(self) -> None:
        for each in self._refreshing.status.members:
            if self._states.get(each.member.name) != each.state:
                self._states[each.member.name] = each.state
                self._write(_change(each))

    def _write(self, text: str) -> None:
        for line in lines_for(self._stream, [printable_lines(text)]):
            self._stream.write(line + "\n")
        self._stream.flush()


def _change(each: MemberStatus) -> str:
    name, state = each.member.name, each.state
    if state == "finished":
        return f"{name}: finished, {marked_score(each.evaluation)}"
    if each.failure is not None and state in FAILED:
        return f"{name}: {failure_text(each.failure)}"
    return f"{name}: {state}{f' on {each.host}' if each.host else ''}"
