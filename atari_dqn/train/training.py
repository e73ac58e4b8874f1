"""Everything that learns and plays, as one object: the parts of Algorithm 1 and their whole state."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor

from atari_dqn.agents.learner import Learner, Update, UpdateMetrics
from atari_dqn.agents.networks import dead_unit_share
from atari_dqn.agents.policy import EpsilonGreedy
from atari_dqn.clock import Clock
from atari_dqn.minibatch import Minibatch
from atari_dqn.replay.buffer import ReplayBuffer
from atari_dqn.schedule import LinearSchedule
from atari_dqn.train.reporter import Reporter
from atari_dqn.train.stopwatch import Stopwatch
from atari_dqn.types import Lanes, StateDict, Stateful, StepBatch

RECENT_UPDATES = 1_000
"""Updates whose minibatch is remembered, by its cells."""


@dataclass(kw_only=True)
class Training:
    """The parts of Algorithm 1 (`train.loop.Parts`), each timed, and the state they share."""

    clock: Clock
    exploration: LinearSchedule
    total_steps: int
    update_period_steps: int
    update_frames: int
    """The most frames that can be left of the budget at the last update. Schedules that end with the budget
    are read that far ahead, so that they have ended by then."""
    terminal_on_life_loss: bool
    device: torch.device
    lanes: Lanes
    replay: ReplayBuffer
    policy: EpsilonGreedy
    learner: Learner
    reporter: Reporter
    stopwatch: Stopwatch

    def __post_init__(self) -> None:
        self._recent: deque[tuple[Tensor, Tensor]] = deque(maxlen=RECENT_UPDATES)
        timed = self.stopwatch.timed
        self.choose = timed("act", self._choose)
        self.send = timed("emulate", self.lanes.send)
        self.recv = timed("emulate", self.lanes.recv)
        self.store = timed("store", self._store)
        self._sample = timed("sample", self._draw)
        self._transfer = timed("transfer", self._to_device)
        self._learn = timed("learn", self._take_step)
        self._feed_back = timed("sample", self._tell)
        optimizer = self.learner.optimizer
        optimizer.step = timed("optimize", optimizer.step)  # type: ignore[assignment, method-assign]

    @property
    def schedule_frames(self) -> int:
        """Frames at which the next update reads schedules that end with the budget."""
        return self.clock.env_frames + self.update_frames

    def begin(self) -> None:
        """Start the games of a new run; a resumed one is under way."""
        self.replay.begin(self.lanes.reset())

    def state_dict(self) -> StateDict:
        """Return all that decides how the run goes on; its digest is the checkpoint's `state_digest`."""
        return {name: part.state_dict() for name, part in self._stateful().items()}

    def load_state_dict(self, state: StateDict) -> None:
        """Take over a state, in place of `begin`. Where it lacks the replay's rows, the replay fills anew."""
        for name, part in self._stateful().items():
            part.load_state_dict(state[name])
        if not has_replay(state):
            self.clock.refill()

    def update(self) -> UpdateMetrics:
        """Take one gradient step on a minibatch of the replay."""
        batch = self._sample()
        self._recent.append((batch.cell, batch.weight))
        update = self._learn(self._transfer(batch))
        self._feed_back(batch, update.error)
        return update.metrics

    def recent_batch(self, updates_ago: int = 0) -> Minibatch | None:
        """Return a recent update's minibatch, put together anew; None if it was before the start or resume.

        Where the replay has gone on over one of its cells, that row is of now.
        """
        if updates_ago >= len(self._recent):
            return None
        return self.replay.minibatch(*self._recent[-1 - updates_ago]).to(self.device)

    def recent_state(self) -> StateDict | None:
        """Return the latest minibatch by its cells, as plain values: a gate looks at it once a period."""
        if not self._recent:
            return None
        cell, weight = self._recent[-1]
        return {"cell": cell.tolist(), "weight": weight.tolist()}

    def load_recent_state(self, state: StateDict | None) -> None:
        """Take over the latest minibatch, which a run has none of before its first update."""
        self._recent.clear()
        if state is not None:
            device = self.replay.ring.device
            cell = torch.tensor(state["cell"], dtype=torch.int64, device=device)
            self._recent.append((cell, torch.tensor(state["weight"], device=device)))

    def dead_unit_share(self) -> float | None:
        """Return the share of hidden units that are 0 all over the latest minibatch; None without one."""
        batch = self.recent_batch()
        return None if batch is None else dead_unit_share(self.learner.online, batch.s_tm1)

    def close(self) -> None:
        """End worker processes."""
        self.lanes.close()

    def _stateful(self) -> dict[str, Stateful]:
        return {
            "clock": self.clock,
            "lanes": self.lanes,
            "replay": self.replay,
            "policy": self.policy,
            "learner": self.learner,
            "reporter": self.reporter,
        }

    def _choose(self, epsilon: float) -> Int64[np.ndarray, "E"]:
        return self.policy.choose(lambda: self.replay.newest_stacks().to(self.device), epsilon)

    def _store(self, actions: Int64[np.ndarray, "E"], step: StepBatch) -> None:
        discount = step.discount(terminal_on_life_loss=self.terminal_on_life_loss)
        self.replay.append(actions, discount, step)

    def _draw(self) -> Minibatch:
        return self.replay.sample(self.schedule_frames)

    def _to_device(self, batch: Minibatch) -> Minibatch:
        return batch.to(self.device)

    def _take_step(self, batch: Minibatch) -> Update:
        return self.learner.update(batch)

    def _tell(self, batch: Minibatch, error: Float[Tensor, "B"]) -> None:
        self.replay.feed_back(batch, error)


def has_replay(state: StateDict) -> bool:
    """Return whether a training's state holds its replay's rows."""
    return "ring" in state["replay"]
