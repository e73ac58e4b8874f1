"""Everything that learns and plays, as one object: the parts of Algorithm 1 and their whole state."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor

from atari_dqn.agent.actor import EpsilonGreedy
from atari_dqn.agent.learner import Learner, Update
from atari_dqn.agent.network import dead_unit_share
from atari_dqn.clock import Clock
from atari_dqn.minibatch import Minibatch
from atari_dqn.replay.buffer import ReplayBuffer
from atari_dqn.replay.transfer import host_copy
from atari_dqn.schedule import LinearSchedule
from atari_dqn.train.graphs import CudaGraphs, Eager, Work, unchanged
from atari_dqn.train.metrics_ring import Journal
from atari_dqn.train.reporter import Reporter
from atari_dqn.train.stopwatch import Stopwatch
from atari_dqn.types import Environments, StateDict, Stateful, StepBatch


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
    envs: Environments
    replay: ReplayBuffer
    policy: EpsilonGreedy
    learner: Learner
    journal: Journal
    reporter: Reporter
    stopwatch: Stopwatch
    captured: bool
    """Whether acting and updates are played from CUDA graphs; what is captured are the same functions."""

    def __post_init__(self) -> None:
        self._before_start: tuple[Tensor, Tensor] | None = None
        """Cells and weights of the update before a resume."""
        self._actions = torch.zeros(self.envs.num_envs, dtype=torch.int64, device=self.device)
        self._actions_on_host = host_copy(self._actions)
        timed = self.stopwatch.timed
        self.choose = timed("act", self._choose)
        self.send = timed("emulate", self.envs.send)
        self.recv = timed("emulate", self.envs.recv)
        self.store = timed("store", self._store)
        self._sample = timed("sample", self._draw)
        self._transfer = timed("transfer", self._to_device)
        self._learn = timed("learn", self._take_step)
        self._feed_back = timed("sample", self._tell)
        self._prepare = timed("sample", self._get_ready)
        self._wait_for_updates = timed("learn", self.journal.wait)
        optimizer = self.learner.optimizer
        optimizer.step = timed("optimize", optimizer.step)  # type: ignore[assignment, method-assign]
        self._learn_together = timed("learn", self._run_updates)
        self.use_graphs(self.captured)

    @property
    def schedule_frames(self) -> int:
        """Frames at which the next update reads schedules that end with the budget."""
        return self.clock.env_frames + self.update_frames

    def begin(self) -> None:
        """Start the games of a new run; a resumed one is under way."""
        self.replay.begin(self.envs.reset())

    def state_dict(self) -> StateDict:
        """Return all that decides how the run goes on; its digest is the checkpoint's `state_digest`."""
        return {name: part.state_dict() for name, part in self._stateful().items()}

    def load_state_dict(self, state: StateDict) -> None:
        """Take over a state, in place of `begin`. Where it lacks the replay's rows, the replay fills anew.

        `ValueError` where the parts do not fit each other.
        """
        for name, part in self._stateful().items():
            part.load_state_dict(state[name])
        self._acting.forget()
        self._updating.forget()
        if not has_replay(state):
            self.clock.refill()
        self._refuse_other_counts(state)

    def update(self, count: int) -> None:
        """Take so many gradient steps, each on a minibatch of the replay."""
        if not count:
            return
        self._prepare()
        to_do = count
        while to_do:
            together = min(to_do, self.learner.updates_to_copy)
            self._learn_together(together)
            self.learner.made(together)
            to_do -= together
        self.journal.wrote(count)

    def update_once(self) -> None:
        """Draw, learn, tell the replay, write it down: one update, as a graph of it does it too."""
        batch = self._sample()
        there = self._transfer(batch)
        update = self._learn(there)
        self._feed_back(batch, update.error)
        self.journal.write(there, update.metrics)

    def recent_batch(self, updates_ago: int = 0) -> Minibatch | None:
        """Return a recent update's minibatch, put together anew; None if it was before the start or resume.

        Where the replay has gone on over one of its cells, that row is of now.
        """
        drawn = self._drawn(updates_ago)
        if drawn is None:
            return None
        place = self.replay.ring.device
        return self.replay.minibatch(*(values.to(place) for values in drawn)).to(self.device)

    def recent_state(self) -> StateDict | None:
        """Return the latest minibatch by its cells, as plain values: a gate looks at it once a period."""
        drawn = self._drawn(0)
        if drawn is None:
            return None
        cell, weight = drawn
        return {"cell": cell.tolist(), "weight": weight.tolist()}

    def load_recent_state(self, state: StateDict | None) -> None:
        """Take over the latest minibatch, which a run has none of before its first update."""
        self._before_start = None
        if state is not None:
            cell = torch.tensor(state["cell"], dtype=torch.int64)
            self._before_start = cell, torch.tensor(state["weight"])

    def check_recent_state(self, state: StateDict | None) -> None:
        """Raise a `ValueError` for a latest minibatch of cells that the replay does not have."""
        cells = self.replay.ring.zero_cell
        if state is not None and not all(0 <= cell < cells for cell in state["cell"]):
            raise ValueError(f"recent_batch: expected cells from 0 to {cells - 1}")

    def dead_unit_share(self) -> float | None:
        """Return the share of hidden units that are 0 all over the latest minibatch; None without one."""
        batch = self.recent_batch()
        return None if batch is None else dead_unit_share(self.learner.online, batch.s_tm1)

    def use_graphs(self, captured: bool) -> None:
        """Play acting and updates from CUDA graphs, or do them as they are written: the same functions."""
        self.captured = captured
        self._acting, self._updating = self._graphs() if captured else self._eager()

    def compile(self) -> None:
        """Have acting and learning compiled before anything waits for it; no weight and no stream moves."""
        place, size = self.replay.ring.device, self.replay.sampler.batch_size
        nothing = self.replay.minibatch(
            torch.zeros(size, dtype=torch.int64, device=place), torch.ones(size, device=place)
        )
        with unchanged(self.learner.written, [self.policy.generator, self.learner.generator]):
            self.policy.greedy(self.replay.newest_stacks().to(self.device))
            self.learner.try_out(nothing.to(self.device))

    def close(self) -> None:
        """End worker processes."""
        self.envs.close()

    def _refuse_other_counts(self, state: StateDict) -> None:
        """Raise a `ValueError` where the clock counts what cannot have been played or learned."""
        clock, ring = self.clock, self.replay.ring
        if has_replay(state) and clock.steps > ring.newest * ring.num_envs:
            raise ValueError(f"clock.steps: found {clock.steps}, more than the replay has had")
        owed = clock.updates_due(period_steps=self.update_period_steps)
        if owed > 1 + self.envs.num_envs // self.update_period_steps:
            raise ValueError(f"clock.updates: {owed} updates would be owed, more than a tick's")

    def _stateful(self) -> dict[str, Stateful]:
        return {
            "clock": self.clock,
            "lanes": self.envs,
            "replay": self.replay,
            "policy": self.policy,
            "learner": self.learner,
            "reporter": self.reporter,
        }

    def _choose(self, epsilon: float) -> Int64[np.ndarray, "E"]:
        return self.policy.choose(self._greedy, epsilon)

    def _greedy(self) -> Int64[np.ndarray, "E"]:
        """Ask the network for every action: the one place of a tick where the host waits for a GPU.

        It waits first for the updates before, then for the actions, so that each has its time in the log.
        """
        self._acting.run()
        self._actions_on_host.fetch()
        self._wait_for_updates()
        return self._actions_on_host.wait()

    def _act(self) -> None:
        stacks = self.replay.newest_stacks().to(self.device)
        self._actions.copy_(self.policy.greedy(stacks))

    def _run_updates(self, count: int) -> None:
        self._updating.run(count)

    def _eager(self) -> tuple[Work, Work]:
        return Eager(self._act), Eager(self.update_once)

    def _graphs(self) -> tuple[Work, Work]:
        """Return acting and updating as graphs; a tick's usual number of updates is one."""
        sampler, learner = self.replay.sampler, self.learner
        acting = CudaGraphs(self._act, generators=[self.policy.generator], written=lambda: [self._actions])
        updating = CudaGraphs(
            self.update_once,
            generators=[sampler.generator, learner.generator],
            written=lambda: [*sampler.written(), *learner.written(), *self.journal.written()],
            most_at_once=max(1, self.envs.num_envs // self.update_period_steps),
        )
        return acting, updating

    def _drawn(self, updates_ago: int) -> tuple[Tensor, Tensor] | None:
        """Return a recent minibatch's cells and weights."""
        if not self.journal.count and not updates_ago:
            return self._before_start
        return self.journal.minibatch(updates_ago)

    def _store(self, actions: Int64[np.ndarray, "E"], step: StepBatch) -> None:
        discount = step.discount(terminal_on_life_loss=self.terminal_on_life_loss)
        self.replay.append(actions, discount, step)

    def _draw(self) -> Minibatch:
        return self.replay.sample()

    def _get_ready(self) -> None:
        self.replay.prepare(self.schedule_frames)

    def _to_device(self, batch: Minibatch) -> Minibatch:
        return batch.to(self.device)

    def _take_step(self, batch: Minibatch) -> Update:
        return self.learner.learn(batch)

    def _tell(self, batch: Minibatch, error: Float[Tensor, "B"]) -> None:
        self.replay.feed_back(batch, error)


def has_replay(state: StateDict) -> bool:
    """Return whether a training's state holds its replay's rows."""
    return "ring" in state["replay"]
