"""The learner's part of a training: updates on minibatches of the replay."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from atari_dqn.agent.diagnostics import Diagnostics
from atari_dqn.agent.learner import Learner
from atari_dqn.agent.network import QNetwork
from atari_dqn.agent.redo import Recycled
from atari_dqn.assembly.acceleration import Backend, Eager, Work
from atari_dqn.clock import Clock
from atari_dqn.minibatch import Batch
from atari_dqn.replay.sampling import Sampling
from atari_dqn.schedule import HorizonSchedule
from atari_dqn.telemetry.events import Row
from atari_dqn.train.metrics_ring import MetricsRing
from atari_dqn.train.recent_minibatches import RecentMinibatches
from atari_dqn.train.reporter import Reporter
from atari_dqn.train.stopwatch import Part, Stopwatch
from atari_dqn.types import Emulators, StateDict, Stateful


@dataclass(kw_only=True)
class Learning(ABC):
    """A training: one learner, its replay, and what plays; holds their times and their state."""

    clock: Clock
    total_steps: int
    update_period_steps: int
    updates_per_period: int
    lookahead_frames: int
    """Schedules that end with the budget are read this many frames ahead, so that the last update has their
    final value: the largest number of frames between the last update and the end of the budget."""
    device: torch.device
    backend: Backend
    envs: Emulators
    """What plays, in whatever process."""
    replay: Sampling[Any]
    learner: Learner
    horizon: HorizonSchedule
    diagnostics: Diagnostics
    metrics: MetricsRing
    reporter: Reporter
    stopwatch: Stopwatch
    recycled: list[Recycled] = field(default_factory=list)
    """Reports of recycled units that were not read yet."""
    captured: bool
    """Whether acting and updates are replayed from CUDA graphs, captured from the same functions."""

    def __post_init__(self) -> None:
        self.recent = RecentMinibatches(
            self.replay, self.metrics, learner=self.learner, horizon=self.horizon, device=self.device
        )
        optimizing: list[Part] = []

        def begin(*_: Any) -> None:
            optimizing.append(self.stopwatch.part("optimize"))
            optimizing[-1].__enter__()

        self.learner.optimizer.register_step_pre_hook(begin)
        self.learner.optimizer.register_step_post_hook(lambda *_: optimizing.pop().__exit__(None, None, None))
        self._set_horizon()
        self.use_graphs(self.captured)

    @property
    def schedule_frames(self) -> int:
        """Number of frames at which the next update reads schedules that end with the budget."""
        return self.clock.env_frames + self.lookahead_frames

    @property
    @abstractmethod
    def greedy_counts(self) -> tuple[int, ...]:
        """Number of times that each action was greedy, for the gate of actions."""

    @property
    @abstractmethod
    def acting_network(self) -> QNetwork:
        """The network that acts, and that evaluations measure."""

    @abstractmethod
    def begin(self) -> None:
        """Begin a new run; a resumed run restores a state instead."""

    @abstractmethod
    def iterations(self) -> Iterator[Any]:
        """Train until the budget is reached; between iterations the state is consistent."""

    @abstractmethod
    def rows(self, iteration: Any) -> Iterator[Row]:
        """Yield the rows of train_log and update_log that an iteration completes."""

    def notices(self) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """Yield kind, message and data of the notices about occurrences since the last call: none."""
        yield from ()

    def period_notices(
        self,
        seconds: float,  # noqa: ARG002 — there are none
    ) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """Yield kind, message and data of the notices about a period of the log that has ended: none.

        `seconds`: of training in that period, without evaluations.
        """
        yield from ()

    @abstractmethod
    def compile(self) -> None:
        """Compile acting and learning, if the back end compiles; weights and streams do not change."""

    @abstractmethod
    def _stateful(self) -> dict[str, Stateful]:
        """Return the parts of the state by name."""

    def state_dict(self) -> StateDict:
        """Return everything that determines how the run continues; `state_digest` is its digest."""
        return {name: part.state_dict() for name, part in self._stateful().items()}

    def load_state_dict(self, state: StateDict) -> None:
        """Restore a state, instead of `begin`. If it has no rows of the replay, the replay is filled again.

        Raise `ValueError` if the parts do not match each other.
        """
        for name, part in self._stateful().items():
            part.load_state_dict(state[name])
        self._set_horizon()
        self._updating.forget()
        if not has_replay(state):
            self.clock.refill()

    def update(self, count: int) -> None:
        """Take `count` gradient steps, each on a minibatch of the replay."""
        if not count:
            return
        with self.stopwatch.part("sample"):
            self.replay.prepare(self.schedule_frames)
        with self.stopwatch.part("learn"):
            remaining = count
            while remaining:
                together = min(remaining, self.learner.updates_before_work, self.horizon.updates_together)
                self._updating.run(together)
                self.learner.count_updates(together)
                self._set_horizon()
                remaining -= together
            self.metrics.count_updates(count)

    def update_once(self) -> None:
        """Sample a minibatch, take a gradient step on it, and update its priorities."""
        with self.stopwatch.part("sample"):
            batch = self.replay.sample()
        with self.stopwatch.part("transfer"):
            on_device = batch.to(self.device)
        update = self.learner.gradient_step(on_device)
        with self.stopwatch.part("sample"):
            self.replay.update_priorities(batch, update.priorities)
        self.metrics.write(on_device, update.metrics)

    def sample_states(self, seed: int, *, count: int) -> Tensor:
        """Sample `count` states from a stream of `seed`, without changing the replay's."""
        indices, weights = self.replay.sample_for_diagnostics(
            1, env_frames=self.schedule_frames, seed=seed, batch_size=count
        )
        states: Tensor = self.replay.minibatch(indices[0], weights[0]).s_tm1
        return states

    def use_graphs(self, captured: bool) -> None:
        """Select whether updates are replayed from CUDA graphs or run eagerly."""
        self.captured = captured
        self._updating: Work = self._graph_of_updates() if captured else Eager(self.update_once)

    def example(self) -> Batch:
        """Return a minibatch of zeros, to compile on."""
        place, size = self.replay.ring.device, self.replay.sampler.batch_size
        batch: Batch = self.replay.minibatch(
            torch.zeros(size, dtype=torch.int64, device=place), torch.ones(size, device=place)
        )
        return batch.to(self.device)

    def close(self) -> None:
        """Stop the processes that play."""
        self.envs.close()

    def _graph_of_updates(self) -> Work:
        """Create a graph of the usual number of updates of an iteration."""
        sampler, learner = self.replay.sampler, self.learner
        return self.backend.captured(
            self.update_once,
            generators=[sampler.generator, learner.generator],
            mutated=lambda: [
                *sampler.mutated_tensors(), *learner.mutated_tensors(), *self.metrics.mutated_tensors()
            ],
            most_at_once=max(1, self.envs.num_envs * self.updates_per_period // self.update_period_steps),
        )  # fmt: skip

    def _set_horizon(self) -> None:
        """Set n and γ of the next update."""
        self.replay.set_horizon(self.horizon.at(self.learner.updates))


def has_replay(state: StateDict) -> bool:
    """Return whether a state of a training has the rows of its replay."""
    return "ring" in state["replay"]
