"""Format the present state of a run from its files: in a few words for a heading, or in a few lines."""

from __future__ import annotations

import math

from rich.text import Text

from atari_dqn.compare.reference.caps import marked_score
from atari_dqn.formatting import duration, fingerprint, plural, score
from atari_dqn.run.log_damage import log_damage, log_remedy
from atari_dqn.run.tailing.shown_progress import shown_progress
from atari_dqn.run.tailing.status import RunStatus
from atari_dqn.telemetry.events import GateChanged, Notice
from atari_dqn.view.wrapping import lines_at_words

_NOTICES = 3


def state_text(status: RunStatus) -> str:
    """Format a run's state and the age of its newest file."""
    if not math.isfinite(status.silent_seconds):
        return f"{status.state}, nothing written yet"
    return f"{status.state}, written {duration(status.silent_seconds)} ago"


def status_text(name: str, status: RunStatus, columns: int | None = None) -> Text:
    """Format a run's progress, scores, gates and latest notices, each on a line wrapped to `columns`."""
    identity = status.identity
    best = f"{marked_score(status.best_evaluation)} (a maximum)" if status.best_evaluation else ""
    damage = log_damage(status)
    lines = [
        (name, f"track {identity.track_label}, {identity.game}, seed {identity.seed}"),
        ("state", state_text(status)),
        ("frames", _frames(status)),
        ("rolling return", _rolling_return(status)),
        ("last evaluation", _evaluation(status, damage)),
        ("best evaluation", best),
        ("gates", ", ".join(status.alerts) or "ok"),
        ("left out", status.fault),
        ("damaged", f"{damage}; {log_remedy(status.run)}" if damage else ""),
    ]
    widest = max(len(label) for label, _ in lines)
    shown = [f"{label:{widest}}  {text}" for label, text in lines if text]
    shown += _notices(status)
    if columns is not None:
        indent = " " * (widest + 2)
        shown = [part for line in shown for part in lines_at_words(line, columns, indent=indent)]
    return Text("\n".join(shown))


def _frames(status: RunStatus) -> str:
    rate, left = status.frames_per_second, status.seconds_left
    text = shown_progress(status).text()
    if status.state == "running" and not math.isnan(rate):
        text += f", {rate:,.0f} frames/s, {duration(left)} left"
    return text


def _rolling_return(status: RunStatus) -> str:
    rolling = score(float(status.latest.get("update_log", {}).get("rolling_return", math.nan)))
    mix = status.identity.mixed_epsilon
    return f"{rolling}, no score: of environments with {mix}" if mix else rolling


def _evaluation(status: RunStatus, damage: str) -> str:
    row = status.latest.get("eval_log")
    if row is None:
        return "not known" if "eval_log.csv" in damage else "none yet"
    mean, std = (score(float(row[f"{name}_return"])) for name in ("mean", "std"))
    spread = f" ± {std}" if row["episodes"] > 1 else ""
    protocol = fingerprint(str(row["protocol"]))
    cut = f", {row['frame_caps']:.0f} cut by the frame cap" if row["frame_caps"] else ""
    return (
        f"{mean}{spread}, {row['eval_type']}, {plural(row['episodes'], 'episode')}{cut}, "
        f"at {row['env_frames']:,} frames [{protocol}]"
    )


def _notices(status: RunStatus) -> list[str]:
    return [
        "",
        *(f"{notice.env_frames:>13,}  {_notice_text(notice)}" for notice in status.notices[-_NOTICES:]),
    ]


def _notice_text(notice: Notice | GateChanged) -> str:
    kind = f"gate {notice.gate} {notice.state}" if isinstance(notice, GateChanged) else notice.kind
    return f"{kind}: {notice.message}"
