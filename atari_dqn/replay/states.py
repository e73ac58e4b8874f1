"""Recurrent states of some rows, in slots that each environment reuses in turn."""

from __future__ import annotations

import copy

import numpy as np
import torch
from jaxtyping import Bool, Float, Int32, Int64
from torch import Tensor

from atari_dqn.minibatch import to_device
from atari_dqn.replay.transfer import row_writer, upload_rows
from atari_dqn.types import StateDict


class StateTable:
    """The recurrent states of `num_envs` environments, each with `slots` slots, and a zero state.

    Slots are written in the order of time, and the oldest is overwritten. The slots that were written last
    can be given back, so that states which turn out to be unused take no room.
    """

    def __init__(self, *, rows: int, num_envs: int, slots: int, width: int, device: torch.device) -> None:
        self._rows, self._envs, self._slots, self._device = rows, num_envs, slots, device
        self._stride, self._first_env = num_envs, 0
        self.zero_slot = num_envs * slots
        self.states = torch.zeros((self.zero_slot + 1, width), device=device)
        self.slot = torch.full((rows * num_envs,), self.zero_slot, dtype=torch.int32, device=device)
        """The slot of each index of the ring; the zero state's for most of them."""
        self._writer = row_writer(self.slot)
        self._written = np.zeros(num_envs, dtype=np.int64)
        """Number of states that each environment has written and not given back."""

    def group(self, envs: range) -> StateTable:
        """Return the table of some environments, in the same storage (`FrameRing.group`)."""
        part = copy.copy(self)
        part._envs, part._first_env = len(envs), envs.start
        part._written = self._written[envs.start : envs.stop]
        return part

    def write(self, row: int, keeps: Bool[np.ndarray, "E"], state: Float[Tensor, "E R"] | None) -> None:
        """Write the states of some environments at a row; the others have none there.

        `state` may be None if no environment has one.
        """
        slots = np.full(self._envs, self.zero_slot, dtype=np.int32)
        envs = np.flatnonzero(keeps)
        slots[envs] = (self._first_env + envs) * self._slots + self._written[envs] % self._slots
        self._written[envs] += 1
        self._writer.write(slots, row % self._rows * self._stride + self._first_env)
        if len(envs):
            assert state is not None, "an agent with memory has a state"
            place, chosen = (torch.from_numpy(each).long() for each in (slots[envs], envs))
            chosen = to_device(chosen, state.device)
            self.states[to_device(place, self._device)] = state[chosen].to(self._device)

    def clear(self, row: int, count: int) -> None:
        """Set that no environment has a state at `count` rows from `row` on."""
        own = self.slot.view(self._rows, self._stride)[:, self._first_env : self._first_env + self._envs]
        upload_rows(np.full((count, self._envs), self.zero_slot, dtype=np.int32), own, row)

    def give_back(self, counts: Int64[np.ndarray, "E"]) -> None:
        """Give back the slots that each environment wrote last."""
        self._written -= counts

    def read(self, index: Int64[Tensor, "B"]) -> Float[Tensor, "B R"]:
        """Gather the states at indices of the ring; zero where none was written."""
        return self.states.index_select(0, self.slot[index].long())

    def state_dict(self) -> StateDict:
        """Return the states, their slots and the number of states written."""
        return {"states": self.states, "slot": self.slot, "written": self._written.copy()}

    def load_state_dict(self, state: StateDict) -> None:
        """Restore a state of a table of the same shape; `ValueError` for a slot outside of the table."""
        slot: Int32[Tensor, "n"] = torch.as_tensor(state["slot"])
        if len(slot) and not 0 <= int(slot.min()) <= int(slot.max()) <= self.zero_slot:
            raise ValueError(f"replay.states.slot: expected slots from 0 to {self.zero_slot}")
        self.states.copy_(torch.as_tensor(state["states"]))
        self.slot.copy_(slot)
        self._written[:] = state["written"]
