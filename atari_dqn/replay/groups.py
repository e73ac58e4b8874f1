"""A replay of several groups of environments, one for each actor, that are written at different times."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from atari_dqn.replay.group_rows import GroupedRows, RowsOfGroup
from atari_dqn.replay.replay import Replay, first_step
from atari_dqn.replay.ring import FrameRing
from atari_dqn.replay.sampler import Sampler
from atari_dqn.replay.sampling import B, Sampling
from atari_dqn.replay.states import StateTable
from atari_dqn.schedule import Horizon
from atari_dqn.types import StateDict


class GroupedReplay(Sampling[B]):
    """Replays on the columns of one ring with one sampler: each group has a newest row of its own.

        environments    0   1 | 2   3 | 4   5
        group             0   |   1   |   2
        newest row       150  |  100  |  150            the next 50 rows are those of group 1

    Each group keeps the invariant of `Replay` for its own indices, and any of them gathers from the whole
    ring.
    """

    def __init__(
        self,
        ring: FrameRing,
        sampler: Sampler,
        groups: Sequence[Replay[B]],
        *,
        states: StateTable | None = None,
    ) -> None:
        super().__init__(ring, sampler)
        self.groups, self._states = tuple(groups), states
        firsts = [group.ring.first_env for group in self.groups]
        ends = [group.ring.first_env + group.ring.num_envs for group in self.groups]
        assert [0, *ends] == [*firsts, ring.num_envs], "the groups are all environments, in order"

    def minibatch(self, index: Int64[Tensor, "B"], weight: Float[Tensor, "B"]) -> B:
        """Gather the samples that begin at these indices, of any group."""
        return self.groups[0].minibatch(index, weight)

    def set_horizon(self, horizon: Horizon) -> None:
        """Set n and γ of the next minibatches."""
        for group in self.groups:
            group.set_horizon(horizon)

    @property
    def rows_stored(self) -> int:
        """Number of rows of all groups."""
        return sum(group.rows_stored for group in self.groups)

    def sampled_indices(self) -> Int64[Tensor, "n"]:
        """Return the indices that the sampler must contain."""
        return torch.cat([group.sampled_indices() for group in self.groups])

    def steps_to_report(self) -> Int64[Tensor, "n"]:
        """Return the indices of the steps whose rewards and ends a report describes."""
        return torch.cat([group.steps_to_report() for group in self.groups])

    def age_steps(self, index: Int64[Tensor, "n"]) -> Int64[Tensor, "n"]:
        """Compute the age of each index in rows of its group, as steps of all environments."""
        newest = torch.tensor([group.ring.newest for group in self.groups], device=index.device)
        group = index % self.ring.stride // self.groups[0].ring.num_envs
        return (newest[group] - index // self.ring.stride) % self.ring.rows * self.ring.num_envs

    def step_share(self) -> float:
        """Compute the fraction of stored indices with a step."""
        written = [group for group in self.groups if group.ring.newest > group.ring.oldest]
        rows = [group.ring.newest - group.ring.oldest for group in written]
        steps = sum(group.step_share() * count for group, count in zip(written, rows, strict=True))
        return steps / sum(rows)

    def check(self) -> None:
        """Assert the invariant of every group; tests call it after every change."""
        for group in self.groups:
            group.check()

    def state_dict(self) -> StateDict:
        """Return the states of rings and sampler, the oldest row of each group, and recurrent states."""
        rings = [group.ring.state_dict() for group in self.groups]
        ring = {
            "newest": [each["newest"] for each in rings],
            "rows": GroupedRows([each["rows"] for each in rings]),
            "newest_frame": torch.cat([each["newest_frame"] for each in rings]),
            "newest_start": torch.cat([each["newest_start"] for each in rings]),
        }
        groups = [group.rows_state() for group in self.groups]
        states = {} if self._states is None else {"states": self._states.state_dict()}
        return {"ring": ring, "sampler": self.sampler.state_dict(), "groups": groups, **states}

    def load_state_dict(self, state: StateDict) -> None:
        """Restore a state of a replay of the same shape; `ValueError` if its parts do not match.

        If the rows were not saved, every group begins again with its newest frames, and the sampler's random
        stream continues.
        """
        if "ring" not in state:
            for group in self.groups:
                group.begin(first_step(state["newest_frame"][_envs_of(group)]))
            self._continue_stream(state)
            return
        ring = state["ring"]
        if self._states is not None:
            self._states.load_state_dict(state["states"])
        self.sampler.load_state_dict(state["sampler"])
        for number, group in enumerate(self.groups):
            rows = {
                "newest": ring["newest"][number],
                "rows": RowsOfGroup(ring["rows"], number),
                "newest_frame": ring["newest_frame"][_envs_of(group)],
                "newest_start": ring["newest_start"][_envs_of(group)],
            }
            group.ring.load_state_dict(rows)
            group.load_rows_state(state["groups"][number])
        self._refuse_other_indices()


def _envs_of(group: Replay[B]) -> slice:
    """Return the environments of a group."""
    return slice(group.ring.first_env, group.ring.first_env + group.ring.num_envs)
