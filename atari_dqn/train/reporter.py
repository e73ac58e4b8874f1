"""Compute the rows of train_log, one per episode, and of update_log, one per period, from iterations."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Protocol

import numpy as np
import torch
from jaxtyping import Float

from atari_dqn.agent.losses import UPDATE_METRICS
from atari_dqn.clock import Clock, Every, steps_to_frames
from atari_dqn.telemetry.events import Row, Value
from atari_dqn.train.episodes import Episode, EpisodeTracker
from atari_dqn.train.loop import Epsilon, Iteration
from atari_dqn.types import StateDict, StepBatch

MEANS = ("loss", "mean_q", "mean_abs_td_error", "grad_norm")
LARGEST = {"max_q": "max_q", "max_grad_norm": "grad_norm"}
"""Columns with the maximum of a period → the update metric whose maximum it is."""
_MEANS_AT = [UPDATE_METRICS.index(name) for name in MEANS]
_LARGEST_AT = [UPDATE_METRICS.index(name) for name in LARGEST.values()]


class Updates(Protocol):
    """The metrics of updates, each row read once, in order (`train.metrics_ring.Reader`)."""

    def arrived(self) -> Float[np.ndarray, "n M"]:
        """Return the rows that are on the host and were not read yet."""
        ...

    def all(self) -> Float[np.ndarray, "n M"]:
        """Wait for all updates so far, and return the rows that were not read yet."""
        ...


class UpdateMeter:
    """Sums and maxima of update metrics over a period."""

    def __init__(self) -> None:
        self.sums = np.zeros(len(MEANS))
        self.largest = np.full(len(LARGEST), -np.inf, dtype=np.float32)
        self.updates = 0

    def add(self, measured: Float[np.ndarray, "n M"]) -> None:
        """Add updates one by one, so that the sums do not depend on how they are grouped. NaN stays NaN."""
        for row in measured:
            self.sums += row[_MEANS_AT]
            np.maximum(self.largest, row[_LARGEST_AT], out=self.largest)
        self.updates += len(measured)

    def take(self) -> dict[str, float]:
        """Return the means and maxima of the period, NaN without updates, and begin the next period."""
        count = self.updates or np.nan
        means = {name: total / count for name, total in zip(MEANS, self.sums.tolist(), strict=True)}
        values = self.largest.tolist() if self.updates else [np.nan] * len(LARGEST)
        self.sums.fill(0.0)
        self.largest.fill(-np.inf)
        self.updates = 0
        return means | dict(zip(LARGEST, values, strict=True))

    def state_dict(self) -> StateDict:
        """Return the sums and maxima of the current period."""
        sums, largest = (torch.from_numpy(values.copy()) for values in (self.sums, self.largest))
        return {"sums": sums, "largest": largest, "updates": self.updates}

    def load_state_dict(self, state: StateDict) -> None:
        """Restore the sums and maxima of a period."""
        self.sums[:] = torch.as_tensor(state["sums"]).cpu().numpy()
        self.largest[:] = torch.as_tensor(state["largest"]).cpu().numpy()
        self.updates = state["updates"]


class Reporter:
    """Computes the rows of train_log and update_log from iterations, without effect on the loop."""

    def __init__(
        self,
        clock: Clock,
        *,
        envs: int,
        update_period_steps: int,
        rolling_episodes: int,
        updates: Updates,
    ) -> None:
        self._clock, self._updates = clock, updates
        self._tracker = EpisodeTracker(envs)
        self._meter = UpdateMeter()
        self._period = Every(period=update_period_steps)
        self._episodes = 0
        self._recent: deque[tuple[float, int]] = deque(maxlen=rolling_episodes)

    def rows(self, iteration: Iteration, *, replay_transitions: int) -> Iterator[Row]:
        """Yield a row for each episode that ended, and one if a period ended."""
        yield from self.episode_rows(iteration.step, iteration.epsilon)
        yield from self.period_rows(iteration.epsilon, replay_transitions=replay_transitions)

    def episode_rows(self, step: StepBatch, epsilon: Epsilon, *, first_env: int = 0) -> Iterator[Row]:
        """Yield a row for each episode that ended in a step of the environments from `first_env` on."""
        for episode in self._tracker.add_step(step, first_env):
            each = np.broadcast_to(epsilon, len(step.reward))
            yield self._episode_row(episode, float(each[episode.slot - first_env]))

    def add_steps(self, steps: StepBatch, *, first_env: int = 0) -> None:
        """Add consecutive steps of the environments from `first_env` on, with which no episode ended."""
        self._tracker.add_steps(steps, first_env)

    def period_rows(self, epsilon: Epsilon, *, replay_transitions: int) -> Iterator[Row]:
        """Yield a row if a period has ended. `epsilon`: of all environments, or of each of them."""
        self._meter.add(self._updates.arrived())
        if self._period.due(self._clock.steps):
            yield self._update_row(float(np.mean(epsilon)), replay_transitions)

    def forget_episodes(self, envs: range) -> None:
        """Forget the unfinished episodes of environments, which begin anew."""
        self._tracker.forget(envs)

    def _episode_row(self, episode: Episode, epsilon: float) -> Row:
        self._episodes += 1
        self._recent.append((episode.episode_return, episode.length_steps))
        values: dict[str, Value] = {
            "step": self._clock.steps,
            "env_frames": self._clock.env_frames,
            "episode_number": self._episodes,
            "environment": episode.slot,
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
        self._meter.add(self._updates.all())
        return Row(table="update_log", values=values | self._meter.take())

    def state_dict(self) -> StateDict:
        """Return the unfinished episodes, the sums of the period and the rolling window."""
        self._meter.add(self._updates.all())
        return {
            "tracker": self._tracker.state_dict(),
            "meter": self._meter.state_dict(),
            "period": self._period.state_dict(),
            "episodes": self._episodes,
            "recent": [list(episode) for episode in self._recent],
        }

    def load_state_dict(self, state: StateDict) -> None:
        """Restore a state returned by `state_dict`."""
        self._tracker.load_state_dict(state["tracker"])
        self._meter.load_state_dict(state["meter"])
        self._period.load_state_dict(state["period"])
        self._episodes = state["episodes"]
        self._recent.clear()
        self._recent.extend((episode_return, steps) for episode_return, steps in state["recent"])
