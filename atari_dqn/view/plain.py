"""Print one line per period, for logs, pipes and terminals without a screen."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import TextIO

from atari_dqn.formatting import count, duration, fingerprint, measure, percentage, printable, score
from atari_dqn.telemetry.alerts import Alerts
from atari_dqn.telemetry.events import Event, GateChanged, Notice, Progress, Row
from atari_dqn.view.periods import Periods, RemainingTime
from atari_dqn.view.wrapping import lines_for, terminal_columns

_INDENT = " " * 8
_STEPS_A_LINE = 10
"""Steps of an activity, such as games of an evaluation, from one line to the next."""


class PlainView:
    """Write a line for each event to a text stream, until its reader closes it.

    In a terminal, lines are broken at its width; in a file or a pipe they stay whole, for programs.
    `mixed_epsilon` is the range of ε as text if it differs between environments: training returns are then no
    score.
    """

    def __init__(
        self,
        *,
        title: str,
        total_frames: int,
        stream: TextIO,
        state_text: Callable[[], str] | None = None,
        mixed_epsilon: str = "",
    ) -> None:
        self._stream: TextIO | None = stream
        self._total_frames = total_frames
        self._periods = Periods()
        self._remaining = RemainingTime(total_frames)
        self._alerts = Alerts()
        self._activity, self._written_steps = "", 0
        self._write(f"{title}: {total_frames:,} frames{f' ({state_text()})' if state_text else ''}")
        self._return_label = "mixed" if mixed_epsilon else "return"
        if mixed_epsilon:
            self._write(f"{'':>6}  mixed: returns of training episodes with {mixed_epsilon}, no score")

    def handle(self, event: Event) -> None:
        """Write the line of an event, if it has one."""
        if isinstance(event, Notice):
            if event.kind == "evaluation":  # shown by its row of eval_log
                return
            self._write(f"{count(event.env_frames):>6}  {event.kind}: {event.message}")
        elif isinstance(event, GateChanged):
            if self._alerts.update(event):
                self._write(f"{count(event.env_frames):>6}  gate {event.gate} {event.state}: {event.message}")
        elif isinstance(event, Progress):
            self._handle_progress(event)
        elif isinstance(event, Row):
            self._handle_row(event)

    def close(self) -> None:
        """Stop writing; the stream belongs to the caller and stays open."""
        self._stream = None

    def _handle_progress(self, progress: Progress) -> None:
        """Write a line when an activity begins and after every ten of its steps."""
        if progress.activity != self._activity:
            self._activity, self._written_steps = progress.activity, progress.done
            self._write(f"{'':>6}  {progress.activity}: {progress.total} to do")
        elif self._is_due(progress):
            self._written_steps = progress.done
            self._write(f"{'':>6}  {progress.activity}: {progress.done} of {progress.total}")
        if progress.done >= progress.total:
            self._activity = ""

    def _is_due(self, progress: Progress) -> bool:
        """Return whether ten more steps are done, and others remain."""
        lines, written = progress.done // _STEPS_A_LINE, self._written_steps // _STEPS_A_LINE
        return lines > written and progress.done < progress.total

    def _handle_row(self, row: Row) -> None:
        if row.table == "eval_log":
            self._write(evaluation_line(row))
        elif row.table == "replay_log":
            self._write(replay_line(row))
        elif row.table == "prediction_log" and math.isfinite(float(row.values["std_return"])):
            self._write(prediction_line(row))
        elif row.table == "memory_log" and math.isfinite(float(row.values["state_norm"])):
            self._write(memory_line(row))
        record = self._periods.add(row)
        if record is not None:
            self._remaining.add(record)
            line = period_line(
                record, self._total_frames, self._remaining.seconds(), return_label=self._return_label
            )
            self._write(line)

    def _write(self, text: str) -> None:
        if self._stream is None:
            return
        encoding = self._stream.encoding or "utf-8"
        text = printable(text.replace("\n", " "))
        if len(text) > terminal_columns(self._stream) > 0:
            text = _without_padding(text)
        lines = lines_for(self._stream, [text], indent=_INDENT)
        try:
            self._stream.write("\n".join(lines).encode(encoding, "replace").decode(encoding) + "\n")
            self._stream.flush()
        except (OSError, ValueError):  # a pipe or stream that is closed; training continues
            self._stream = None


def _without_padding(text: str) -> str:
    """Leave one space of each padding, except in front of the event."""
    start = len(_INDENT)
    return text[:start] + re.sub(r" {2,}", " ", text[start:])


def period_line(
    record: Mapping[str, float],
    total_frames: int,
    seconds_left: float | None,
    *,
    return_label: str = "return",
) -> str:
    """Format a period's figures, each with its label, so that a line can be read by itself."""
    share = min(100.0, 100 * record["env_frames"] / total_frames)
    left = "-" if seconds_left is None else duration(seconds_left)
    return " ".join(
        (
            f"{count(record['env_frames']):>6} {share:5.1f}%",
            f"{return_label} {score(record['rolling_return']):>5}",
            f"loss {measure(record['loss']):>5}",
            f"Q {measure(record['mean_q']):>6}",
            f"grad {measure(record['grad_norm']):>5}",
            f"{record['frames_per_second']:>5,.0f} f/s",
            f"{left:>7} left",
        )
    )


def evaluation_line(row: Row) -> str:
    """Format an evaluation's scores, with the beginning of their protocol's fingerprint."""
    value = {name: number for name, number in row.values.items() if not isinstance(number, str)}
    mean, median = (score(value[f"{name}_return"]) for name in ("mean", "median"))
    several = value["episodes"] > 1
    episodes = f"{value['episodes']:.0f} episode{'s' * several}"
    spread = f" ± {score(value['std_return'])}" if several else ""
    low, high = score(value["min_return"]), score(value["max_return"])
    cut = f", {value['frame_caps']:.0f} cut by the frame cap" if value["frame_caps"] else ""
    protocol = fingerprint(str(row.values["protocol"]))
    return (
        f"{count(value['env_frames']):>6}  {row.values['eval_type']} evaluation: {mean}{spread}, "
        f"median {median}, range {low} to {high}, {episodes}{cut} [{protocol}]"
    )


def replay_line(row: Row) -> str:
    """Format the statistics of the replay."""
    value = {name: float(number) for name, number in row.values.items()}
    return (
        f"{count(value['env_frames']):>6}  replay of {count(value['transitions'])}: "
        f"{percentage(value['terminal_share'])} terminal, age {count(value['median_age_steps'])} steps, "
        f"effective {percentage(value['effective_share'])}, β {measure(value['beta'])}, "
        f"weight {measure(value['mean_weight'])}"
    )


def prediction_line(row: Row) -> str:
    """Format the statistics of predicted returns, without those that the value distribution lacks."""
    value = {name: float(number) for name, number in row.values.items()}
    parts = [f"spread {measure(value['std_return'])}", f"action gap {measure(value['action_gap'])}"]
    if math.isfinite(value["lowest_atom_mass"]):
        low, high = (percentage(value[f"{edge}_atom_mass"]) for edge in ("lowest", "highest"))
        parts.append(f"on the edge atoms {low} and {high}")
    if math.isfinite(value["crossed_share"]):
        parts.append(f"{percentage(value['crossed_share'])} of quantiles crossed")
    return f"{count(value['env_frames']):>6}  predicted returns: {', '.join(parts)}"


def memory_line(row: Row) -> str:
    """Format the measures of a memory, without those that the agent lacks."""
    value = {name: float(number) for name, number in row.values.items()}
    parts = [f"state norm {measure(value['state_norm'])}"]
    if math.isfinite(value["early_td_error"]):
        early, late = (measure(value[f"{part}_td_error"]) for part in ("early", "late"))
        parts.append(f"TD error {early} early, {late} late")
    if math.isfinite(value["first_delta_q"]):
        first, last = (percentage(value[f"{place}_delta_q"]) for place in ("first", "last"))
        parts.append(f"ΔQ {first} first, {last} last")
    return f"{count(value['env_frames']):>6}  memory: {', '.join(parts)}"
