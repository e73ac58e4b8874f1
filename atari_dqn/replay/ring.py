"""Store one frame per environment and time step, and assemble stacks and n-step windows from them.

A row of the ring is one time step of all environments. For each environment, row t has

    frame[t]   start[t]     action[t]  reward[t]  discount[t]     is_step[t]
    the observation         the action and its result             False at the last frame of an episode

The newest row has frames but no actions yet. Row numbers count from the beginning of the run and do not wrap;
row t is stored at position `t % rows`. A transition is identified by the flat index of its environment and
row: `(t % rows) * environments + environment`. A group of environments may have rows of its own (`group`).

    frames   A   B   C   D | E   F   G          | = start of an episode
    stack of F (S = 4):      ·   ·   E   F      · = the zero frame
"""

from __future__ import annotations

import copy
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int64, UInt8
from torch import Tensor

from atari_dqn.replay.rows import Loan, RingRows, Rows, Tables, pieces_of
from atari_dqn.replay.transfer import row_writer, upload_rows, zero_bytes
from atari_dqn.types import StateDict, StepBatch

_LOADING_THREADS = min(4, os.cpu_count() or 1)


@dataclass(frozen=True, slots=True)
class Window:
    """n-step windows, which are shorter where an episode ends."""

    r_t: Float[Tensor, "B"]
    """Sum of discounted rewards."""
    discount_t: Float[Tensor, "B"]
    """Discount of the bootstrap value."""
    span_steps: Int64[Tensor, "B"]
    """Number of steps in the window."""


class FrameRing:
    """A ring buffer of `rows` time steps of `num_envs` environments, and a zero frame for padding.

    Invariant: the rows from `oldest` to `newest` are stored, and all but `newest` are complete. A complete
    row does not change until it is overwritten, which waits for the end of a loan.
    """

    def __init__(
        self, *, rows: int, num_envs: int, frame_shape: tuple[int, int], stack: int, device: torch.device
    ) -> None:
        self.rows, self.num_envs, self.stack, self.device = rows, num_envs, stack, device
        self.stride = num_envs
        """Difference between the indices of an environment's consecutive rows."""
        self.first_env = 0
        self.newest = -1
        size = rows * num_envs
        self.zero_index = size
        self.frame = zero_bytes((size + 1, *frame_shape), device)
        self.action = torch.zeros(size, dtype=torch.int16, device=device)
        self.reward = torch.zeros(size, device=device)
        self.discount = torch.zeros(size, device=device)
        self.start = torch.zeros(size, dtype=torch.bool, device=device)
        self.is_step = torch.zeros(size, dtype=torch.bool, device=device)
        self._stack_steps = torch.arange(1 - stack, 1, device=device)
        self._writers = {name: row_writer(column) for name, column in self._columns().items()}
        self._loan = Loan(0)
        self._loan.end()

    def group(self, envs: range) -> FrameRing:
        """Return a ring of some environments, in the columns of this one, which then stores no rows itself.

        Its rows are its own: it is written whenever these environments have played. Both rings gather at any
        index of the whole storage.
        """
        assert self.newest == -1, "groups are made before the first row"
        part = copy.copy(self)
        part.num_envs, part.first_env = len(envs), envs.start
        return part

    @property
    def oldest(self) -> int:
        """Number of the oldest stored row."""
        return max(0, self.newest - self.rows + 1)

    def begin(self, step: StepBatch) -> None:
        """Store the first frames of the run as row 0."""
        assert self.newest == -1, "a ring begins once"
        self._store_frames(step)

    def append(
        self,
        action: Int64[np.ndarray, "E"],
        reward: Float[np.ndarray, "E"],
        discount: Float[np.ndarray, "E"],
        step: StepBatch,
    ) -> None:
        """Complete the newest row with actions and results; store the next frames as a new row."""
        first, writers = self._first_index(self.newest), self._writers
        writers["action"].write(action, first)
        writers["reward"].write(reward, first)
        writers["discount"].write(discount, first)
        writers["is_step"].write(~step.first, first)
        self._store_frames(step)

    def extend(
        self,
        action: Int64[np.ndarray, "T E"],
        reward: Float[np.ndarray, "T E"],
        discount: Float[np.ndarray, "T E"],
        steps: StepBatch,
    ) -> None:
        """Store T consecutive steps, at most as many as there are rows: what `append` stores in T calls."""
        row, count, tables = self.newest, len(action), self._tables()
        self._loan.wait_for(row + count - self.rows)
        upload_rows(action, tables["action"], row)
        upload_rows(reward, tables["reward"], row)
        upload_rows(discount, tables["discount"], row)
        upload_rows(~steps.first, tables["is_step"], row)
        upload_rows(steps.frame, tables["frame"], row + 1)
        upload_rows(steps.first, tables["start"], row + 1)
        self.newest = row + count

    def stacks(self, index: Int64[Tensor, "B"]) -> UInt8[Tensor, "B S H W"]:
        """Gather the stack that ends at each index, zero before the first frame of its episode."""
        indices = self._stack_indices(index)
        # copies whole frames; indexing with a matrix would gather them pixel by pixel
        return self.frame.index_select(0, indices.flatten()).view(*indices.shape, *self.frame.shape[1:])

    def newest_stacks(self) -> UInt8[Tensor, "E S H W"]:
        """Gather the newest stack of each environment, for an actor that continues from stored rows."""
        first = self._first_index(self.newest)
        return self.stacks(torch.arange(first, first + self.num_envs, device=self.device))

    def window(self, index: Int64[Tensor, "B"], *, n_step: int, gamma: float) -> Window:
        """Compute the window of up to `n_step` steps from each index, shorter if the episode ends within it.

        An episode ends at a discount of 0 (no bootstrap) or at a row without a step (bootstrap from its
        frame).
        """
        steps = self.ahead(index[:, None], torch.arange(n_step, device=self.device))
        open_before = self._open_before(steps)
        factor = gamma * self.discount[steps]
        discounts = factor.masked_fill(~open_before, 1.0).cumprod(dim=1)
        before = torch.cat([torch.ones_like(discounts[:, :1]), discounts[:, :-1]], dim=1)
        rewards = self.reward[steps].masked_fill(~open_before, 0.0)
        return Window((before * rewards).sum(dim=1), discounts[:, -1], open_before.sum(dim=1))

    def one_step_window(self, index: Int64[Tensor, "B"], *, gamma: float) -> Window:
        """Compute the windows of `window` for `n_step` = 1, in three operations instead of a dozen."""
        return Window(self.reward[index], gamma * self.discount[index], torch.ones_like(index))

    def ahead(self, index: Int64[Tensor, "*#B"], steps: Int64[Tensor, "*#B"]) -> Int64[Tensor, "*B"]:
        """Compute the indices of the same environments `steps` time steps later, or earlier if below 0."""
        return (index + steps * self.stride) % self.zero_index

    def age_rows(self, index: Int64[Tensor, "n"]) -> Int64[Tensor, "n"]:
        """Compute the age of each index in time steps; 0 for the newest row."""
        return (self.newest - index // self.stride) % self.rows

    def index_of(self, row: Int64[np.ndarray, "n"], env: Int64[np.ndarray, "n"]) -> Int64[np.ndarray, "n"]:
        """Compute the indices of rows and of environments, which are counted from the first of this ring."""
        index: np.ndarray = row % self.rows * self.stride + self.first_env + env
        return index

    def own(self, column: Tensor) -> Tensor:
        """Return this ring's part of a column as [rows, environments, …]."""
        table = column.view(self.rows, self.stride, *column.shape[1:])
        return table[:, self.first_env : self.first_env + self.num_envs]

    def step_share(self) -> float:
        """Compute the fraction of stored indices with a step; the others are the last frames of episodes."""
        stored = torch.arange(self.oldest, self.newest, device=self.device) % self.rows
        return self.own(self.is_step)[stored].double().mean().item()

    def state_dict(self) -> StateDict:
        """Return the complete rows, as a view, and the frames and start flags of the newest row."""
        indices = self._indices_of(self.newest)
        return {
            "newest": self.newest,
            "rows": self._complete_rows(),
            "newest_frame": self.frame[indices],
            "newest_start": self.start[indices],
        }

    def load_state_dict(self, state: StateDict) -> None:
        """Restore stored rows with several threads; `ValueError` if their shape differs from this ring's.

        Each piece is copied to its position when it is read, so that a replay of 7 GB is not in memory twice.
        """
        rows: Rows = state["rows"]
        newest = state["newest"]
        expected = max(0, newest - self.rows + 1)
        if rows.first != expected:
            raise ValueError(f"replay: found rows from {rows.first} on, expected from {expected} on")
        if rows.stop != max(0, newest):
            raise ValueError(f"replay: found rows before {rows.stop}, expected up to {newest}")
        self.own(self.is_step).zero_()
        with ThreadPoolExecutor(_LOADING_THREADS) as pool:
            list(pool.map(lambda piece: self._load_piece(piece[0], rows.read(*piece)), pieces_of(rows)))
        self.newest = newest
        indices = self._indices_of(self.newest)
        self.frame[indices] = torch.as_tensor(state["newest_frame"], device=self.device)
        self.start[indices] = torch.as_tensor(state["newest_start"], device=self.device)

    def steps_of_rows(self) -> Bool[Tensor, "T E"]:
        """Return `is_step` on the host, by position in the ring; False in rows that are not complete."""
        flags = torch.zeros((self.rows, self.num_envs), dtype=torch.bool)
        stored = torch.arange(self.oldest, max(0, self.newest)) % self.rows
        flags[stored] = self.own(self.is_step).cpu()[stored]
        return flags

    def _complete_rows(self) -> RingRows:
        first, stop = self.oldest, max(0, self.newest)
        return RingRows(self._tables(), first=first, stop=stop, lend=lambda: self._lend(first))

    def _lend(self, first: int) -> Loan:
        assert self._loan.ended, "only one loan may exist at a time"
        assert first == self.oldest, "some of these rows are overwritten already"
        self._loan = Loan(first)
        return self._loan

    def _tables(self) -> dict[str, Tensor]:
        """Return every column, as [rows, environments, …]."""
        return {name: self.own(column) for name, column in self._columns().items()}

    def _columns(self) -> dict[str, Tensor]:
        """Return every column, as [rows × environments, …]."""
        return {
            "frame": self.frame[: self.zero_index],
            "action": self.action,
            "reward": self.reward,
            "discount": self.discount,
            "start": self.start,
            "is_step": self.is_step,
        }

    def _load_piece(self, first: int, tables: Tables) -> None:
        for name, column in self._tables().items():
            found = tables[name]
            if found.shape[1:] != column.shape[1:]:
                shapes = found.shape[1:], tuple(column.shape[1:])
                raise ValueError(f"replay.{name}: found rows of {shapes[0]}, expected {shapes[1]}")
            upload_rows(found, column, first)

    def _store_frames(self, step: StepBatch) -> None:
        self._loan.wait_for(self.newest + 1 - self.rows)
        self.newest += 1
        first = self._first_index(self.newest)
        self._writers["frame"].write(step.frame, first)
        self._writers["start"].write(step.first, first)

    def _first_index(self, row: int) -> int:
        return row % self.rows * self.stride + self.first_env

    def _indices_of(self, row: int) -> slice:
        first = self._first_index(row)
        return slice(first, first + self.num_envs)

    def _stack_indices(self, index: Int64[Tensor, "B"]) -> Int64[Tensor, "B S"]:
        indices = self.ahead(index[:, None], self._stack_steps)
        starts_after = self.start[indices[:, 1:]].flip(1).cumsum(dim=1).flip(1)
        indices[:, :-1].masked_fill_(starts_after > 0, self.zero_index)
        return indices

    def _open_before(self, steps: Int64[Tensor, "B n"]) -> Bool[Tensor, "B n"]:
        """Return whether each step of a window exists and its episode did not end before it."""
        continues = self.discount[steps] != 0
        not_ended = torch.cat([torch.ones_like(continues[:, :1]), continues[:, :-1]], dim=1)
        return (self.is_step[steps] & not_ended).cumprod(dim=1).bool()
