"""Evaluations in the live view: the latest, each with its protocol, and a published score."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from rich.console import Group, JustifyMethod, RenderableType
from rich.table import Table
from rich.text import Text

from atari_dqn.compare.reference.caps import MARK
from atari_dqn.compare.reference.match import Reference, Subject, nearest
from atari_dqn.formatting import count, fingerprint, score
from atari_dqn.telemetry.events import Event, Row
from atari_dqn.view.scores import fitting_score

_ROWS = 3
_SCORE_COLUMNS = 6
_SIDES: tuple[JustifyMethod, ...] = ("right", "left", "right", "right", "left")
VERDICT_STYLES = {"below": "red", "on track": "green", "above": "cyan"}


class EvaluationsPanel:
    """Show the latest evaluations, newest first, and the published score whose protocol is nearest."""

    title = "evaluations"

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._rows: deque[tuple[str, ...]] = deque(maxlen=_ROWS)
        self._mean = 0.0
        self._reference: Reference | None = None
        # The first call reads the game's tables, so that later calls do not delay the training.
        nearest(subject, 0)

    def handle(self, event: Event) -> None:
        """Store an evaluation."""
        if not isinstance(event, Row) or event.table != "eval_log":
            return
        values = event.values
        self._mean = float(values["mean_return"])
        self._reference = nearest(
            self._subject, int(values["env_frames"]), cap_reached=bool(values["frame_caps"])
        )
        mark = MARK if values["frame_caps"] else ""
        numbers = (self._mean, float(values["std_return"]))
        mean, std = (fitting_score(number, _SCORE_COLUMNS) for number in numbers)
        protocol = fingerprint(str(values["protocol"]))
        frames = count(float(values["env_frames"]))
        self._rows.appendleft((frames, str(values["eval_type"]), mean + mark, std, protocol))

    def period(self, record: Mapping[str, float]) -> None:
        """Ignore a period: evaluations have rows of their own."""

    def draw(self) -> RenderableType:
        """Draw a row for each evaluation, and the published score below."""
        if not self._rows:
            return Text("none yet", style="dim")
        table = Table.grid(padding=(0, 1, 0, 0))
        for side in _SIDES:
            table.add_column(justify=side, no_wrap=True)
        table.add_row("frames", "kind", "mean", "std", "protocol", style="dim")
        for row in self._rows:
            table.add_row(*row)
        return Group(table, *published(self._reference, self._mean))


def published_score(reference: Reference) -> str:
    """Format a published mean, with the range of its seeds if that was published."""
    if reference.lowest is None or reference.highest is None:
        return score(reference.mean)
    return f"{score(reference.mean)} ({score(reference.lowest)} to {score(reference.highest)})"


def published(reference: Reference | None, mean: float) -> tuple[Text, Text]:
    """Format two lines: the published score, then our verdict against it with its source, or differences."""
    if reference is None:
        return Text("nothing published here", style="dim"), Text("")
    verdict = reference.verdict(mean)
    origin = "interpolated" if reference.between_frames else "published"
    line = Text(f"{origin} {published_score(reference)}", no_wrap=True, overflow="ellipsis")
    about = f"≠ {', '.join(reference.differences)}" if reference.differences else reference.study.title
    below = Text(no_wrap=True, overflow="ellipsis")
    if verdict:  # first: a verdict that is cut says nothing
        below.append(f"{verdict}, ", VERDICT_STYLES.get(verdict, ""))
    return line, below.append(about, "dim")
