"""Turns ticks into rows: episodes as they end, updates once a period. Nothing here reaches the loop."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping

import numpy as np
import torch
from torch import Tensor

from atari_dqn.clock import Clock, Every, steps_to_frames
from atari_dqn.metrics.events import Row, Value
from atari_dqn.train.episodes import Episode, EpisodeTracker
from atari_dqn.train.loop import Tick
from atari_dqn.types import StateDict

MEANS = ("loss", "mean_q", "mean_abs_td_error", "grad_norm")
LARGEST = {"max_q": "max_q", "max_grad_norm": "grad_norm"}
"""Columns that report the period's largest value, and the update metric each is of."""


class UpdateMeter:
    """Sums and maxima of update metrics over a period, kept on their device until they are asked for."""

    def __init__(self, device: torch.device) -> None:
        self.sums = torch.zeros(len(MEANS), dtype=torch.float64, device=device)
        self.largest = torch.full((len(LARGEST),), -torch.inf, device=device)
        self.updates = 0

    def add(self, metrics: Mapping[str, Tensor]) -> None:
        """Take one update's metrics. NaN stays NaN."""
        self.sums += torch.stack([metrics[name] for name in MEANS])
        largest = torch.stack([metrics[name] for name in LARGEST.values()])
        torch.maximum(self.largest, largest, out=self.largest)
        self.updates += 1

    def take(self) -> dict[str, float]:
        """Return the period's values, NaN where there was no update, and begin the next period."""
        count = self.updates or np.nan
        means = {name: total / count for name, total in zip(MEANS, self.sums.tolist(), strict=True)}
        values = self.largest.tolist() if self.updates else [np.nan] * len(LARGEST)
        self.sums.zero_()
        self.largest.fill_(-torch.inf)
        self.updates = 0
        return means | dict(zip(LARGEST, values, strict=True))

    def state_dict(self) -> StateDict:
        """Return the period's sums so far."""
        return {"sums": self.sums.clone(), "largest": self.largest.clone(), "updates": self.updates}

    def load_state_dict(self, state: StateDict) -> None:
        """Take over a period's sums."""
        self.sums.copy_(torch.as_tensor(state["sums"]))
        self.largest.copy_(torch.as_tensor(state["largest"]))
        self.updates = state["updates"]


class Reporter:
    """Consumes ticks, yields rows of train_log and update_log."""

    def __init__(
        self,
        clock: Clock,
        *,
        lanes: int,
        update_period_steps: int,
        rolling_episodes: int,
        device: torch.device,
    ) -> None:
        self._clock = clock
        self._tracker = EpisodeTracker(lanes)
        self._meter = UpdateMeter(device)
        self._period = Every(period=update_period_steps)
        self._episodes = 0
        self._recent: deque[tuple[float, int]] = deque(maxlen=rolling_episodes)

    def rows(self, tick: Tick, *, replay_transitions: int) -> Iterator[Row]:
        """Yield a row for each episode that ended, and one for a period that did."""
        for metrics in tick.updates:
            self._meter.add(metrics)
        for episode in self._tracker.finished(tick.step):
            yield self._episode_row(episode, tick.epsilon)
        if self._period.due(self._clock.steps):
            yield self._update_row(tick.epsilon, replay_transitions)

    def _episode_row(self, episode: Episode, epsilon: float) -> Row:
        self._episodes += 1
        self._recent.append((episode.episode_return, episode.length_steps))
        values: dict[str, Value] = {
            "step": self._clock.steps,
            "env_frames": self._clock.env_frames,
            "episode_number": self._episodes,
            "lane": episode.lane,
            "episode_return": episode.episode_return,
            "episode_length_steps": episode.length_steps,
            "episode_length_frames": steps_to_frames(episode.length_steps, frame_skip=self._clock.frame_skip),
            "end_reason": episode.end_reason,
            "epsilon": epsilon,
        }
        return Row(table="train_log", values=values)

    def _update_row(self, epsilon: float, replay_transitions: int) -> Row:
        rolling_return, rolling_length = np.mean(self._recent, axis=0) if self._recent else (np.nan, np.nan)
        values: dict[str, Value] = {
            "step": self._clock.steps,
            "env_frames": self._clock.env_frames,
            "updates": self._clock.updates,
            "episodes": self._episodes,
            "epsilon": epsilon,
            "replay_transitions": replay_transitions,
            "rolling_return": float(rolling_return),
            "rolling_length_steps": float(rolling_length),
        }
        return Row(table="update_log", values=values | self._meter.take())

    def state_dict(self) -> StateDict:
        """Return episodes under way, the period's sums and the rolling window."""
        return {
            "tracker": self._tracker.state_dict(),
            "meter": self._meter.state_dict(),
            "period": self._period.state_dict(),
            "episodes": self._episodes,
            "recent": [list(episode) for episode in self._recent],
        }

    def load_state_dict(self, state: StateDict) -> None:
        """Take over what `state_dict` returned."""
        self._tracker.load_state_dict(state["tracker"])
        self._meter.load_state_dict(state["meter"])
        self._period.load_state_dict(state["period"])
        self._episodes = state["episodes"]
        self._recent.clear()
        self._recent.extend((episode_return, steps) for episode_return, steps in state["recent"])
