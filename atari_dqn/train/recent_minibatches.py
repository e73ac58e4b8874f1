"""The minibatches of the latest updates, gathered again from the replay for gates and diagnostic bundles."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from atari_dqn.agent.learner import Learner
from atari_dqn.minibatch import Batch
from atari_dqn.replay.sampling import Sampling
from atari_dqn.schedule import HorizonSchedule
from atari_dqn.train.metrics_ring import MetricsRing
from atari_dqn.types import StateDict


class RecentMinibatches:
    """Gathers minibatches by the indices and weights that a `MetricsRing` has of each recent update.

    `horizon` has n and γ of each update; minibatches are moved to `device`, that of the learner. The state is
    that of the latest minibatch, so that a resumed run has one before its first update.
    """

    def __init__(
        self,
        replay: Sampling[Any],
        metrics: MetricsRing,
        *,
        learner: Learner,
        horizon: HorizonSchedule,
        device: torch.device,
    ) -> None:
        self._replay, self._metrics, self._device = replay, metrics, device
        self._learner, self._horizon = learner, horizon
        self._before_start: tuple[Tensor, Tensor] | None = None
        """Indices and weights of the update before a resume."""

    def gather(self, updates_ago: int = 0) -> Batch | None:
        """Gather the minibatch of a recent update again; None if it was before the start or resume.

        A transition that the replay has overwritten since is replaced by the new one, and states are as they
        are stored, without the random shifts of an update.
        """
        sample = self._sample(updates_ago)
        if sample is None:
            return None
        place, updates = self._replay.ring.device, self._learner.updates
        self._replay.set_horizon(self._horizon.at(updates - 1 - updates_ago))
        batch: Batch = self._replay.minibatch(*(values.to(place) for values in sample))
        self._replay.set_horizon(self._horizon.at(updates))
        return batch.to(self._device)

    def state_dict(self) -> StateDict | None:
        """Return indices and weights of the latest minibatch as plain data; None before the first update."""
        sample = self._sample(0)
        if sample is None:
            return None
        index, weight = sample
        return {"cell": index.tolist(), "weight": weight.tolist()}

    def load_state_dict(self, state: StateDict | None) -> None:
        """Restore the latest minibatch."""
        self._before_start = None
        if state is not None:
            index = torch.tensor(state["cell"], dtype=torch.int64)
            self._before_start = index, torch.tensor(state["weight"])

    def check_state_dict(self, state: StateDict | None) -> None:
        """Raise `ValueError` if an index of a state is outside the replay."""
        size = self._replay.ring.zero_index
        if state is not None and not all(0 <= index < size for index in state["cell"]):
            raise ValueError(f"recent_batch: expected indices from 0 to {size - 1}")

    def _sample(self, updates_ago: int) -> tuple[Tensor, Tensor] | None:
        """Return the indices and weights of a recent minibatch."""
        if not self._metrics.count and not updates_ago:
            return self._before_start
        return self._metrics.minibatch(updates_ago)
