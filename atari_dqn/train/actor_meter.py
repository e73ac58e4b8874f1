"""Measure actors over a period: their speed, the lag of their weights, and which side has waited."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from atari_dqn.actors.message import Fragment
from atari_dqn.actors.records import Record
from atari_dqn.clock import steps_to_frames

MOST_SHOWN = 32
"""Number of actors that a report has one by one: those that have ended or are silent, then the slowest."""
_VERSIONS_KEPT = 10_000


class ActorMeter:
    """Sums of a period of the log. Lag: the learner's updates, or the time, since the weights that acted.

    The histogram of the lag has a bin for 0 updates, for 1, for 2 to 3, for 4 to 7, and so on.
    """

    def __init__(self, actors: int, *, frame_skip: int, now: Callable[[], float] = time.monotonic) -> None:
        self._frame_skip, self._now = frame_skip, now
        self._published_at: dict[int, float] = {}
        self._epsilon = np.full(actors, np.nan)
        self._begin(actors)

    def published(self, version: int) -> None:
        """Note the time at which weights were published."""
        self._published_at[version] = self._now()
        if len(self._published_at) > _VERSIONS_KEPT:
            del self._published_at[next(iter(self._published_at))]  # the earliest

    def stored(self, fragment: Fragment, updates: int) -> None:
        """Add a fragment, stored after `updates` updates."""
        played = ~fragment.first.all(axis=1)
        lag = np.maximum(0, updates - fragment.version[played])
        self._lags.update(lag.tolist())
        now = self._now()
        versions = fragment.version[played].tolist()
        earliest = next(iter(self._published_at.values()), now)  # of weights of before a resume, or long ago
        self._lag_seconds += sum(now - self._published_at.get(version, earliest) for version in versions)
        self._steps[fragment.actor] += int(np.count_nonzero(~fragment.first))
        self._lag_sums[fragment.actor] += lag.sum()
        self._rows[fragment.actor] += len(lag)
        self._epsilon[fragment.actor] = fragment.epsilon.mean()

    def waited(self, side: str, seconds: float) -> None:
        """Add time for which one side waited: `learner` for messages, `actors` for updates."""
        self._waited[side] += seconds

    def report(self, records: Sequence[Record], seconds: float) -> tuple[str, dict[str, Any]]:
        """Return a sentence and the data of the period, and begin the next one.

        `seconds`: of training in the period, without evaluations.
        """
        transitions = max(self._lags.total(), 1)
        frames = steps_to_frames(int(self._steps.sum()), frame_skip=self._frame_skip) / seconds
        mean_lag = sum(lag * count for lag, count in self._lags.items()) / transitions
        data = {
            "lag_updates": self._histogram(),
            "mean_lag_updates": mean_lag,
            "max_lag_updates": max(self._lags, default=0),
            "num_actors": len(records),
            "frames_per_second": frames,
            "mean_lag_seconds": self._lag_seconds / transitions,
            "learner_waited_share": self._waited["learner"] / seconds,
            "actors_waited_share": self._waited["actors"] / seconds,
            "dropped_steps": sum(record.dropped_steps for record in records),
            "restarts": sum(record.restarts for record in records),
            "actors": self._actors(records, seconds),
        }
        message = (
            f"{len(records)} actors, {frames:,.0f} frames/s; weights {mean_lag:,.0f} updates old, at most "
            f"{data['max_lag_updates']:,}; {data['dropped_steps']:,} steps dropped in {data['restarts']} "
            f"restarts; the learner waited {data['learner_waited_share']:.0%} of the time, actors "
            f"{data['actors_waited_share']:.0%}"
        )
        self._begin(len(records))
        return message, data

    def _begin(self, actors: int) -> None:
        self._lags: Counter[int] = Counter()
        self._lag_seconds = 0.0
        self._steps, self._rows = (np.zeros(actors, dtype=np.int64) for _ in range(2))
        self._lag_sums = np.zeros(actors)
        self._waited = dict.fromkeys(("learner", "actors"), 0.0)

    def _histogram(self) -> dict[str, int]:
        bins: Counter[int] = Counter()
        for lag, count in self._lags.items():
            bins[lag.bit_length()] += count
        return {_bin_name(bits): bins[bits] for bits in sorted(bins)}

    def _actors(self, records: Sequence[Record], seconds: float) -> list[dict[str, Any]]:
        now = self._now()
        found = [
            {
                "actor": number,
                "state": record.state(now),
                "frames_per_second": steps_to_frames(int(self._steps[number]), frame_skip=self._frame_skip)
                / seconds,
                "epsilon": float(self._epsilon[number]) if self._rows[number] else None,
                "lag_updates": float(self._lag_sums[number] / max(self._rows[number], 1)),
                "dropped_steps": record.dropped_steps,
                "restarts": record.restarts,
            }
            for number, record in enumerate(records)
        ]
        found.sort(key=lambda actor: (actor["state"] == "playing", actor["frames_per_second"]))
        return sorted(found[:MOST_SHOWN], key=lambda actor: int(actor["actor"]))


def _bin_name(bits: int) -> str:
    if bits < 2:
        return str(bits)
    return f"{2 ** (bits - 1)}-{2**bits - 1}"
