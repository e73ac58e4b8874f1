"""The states that actors stored at frames within sequences, where the burn-ins of later sequences begin.

Actors store a state where the burn-in of a sequence begins. The state exists as long as this sequence does.
Here for the sequence that begins at C, with T = 4 steps, a burn-in of 2 and a period of 2:

    frames       A   B   C   D   E   F   G   H   I   J   K
    stored       *       *       *       *       *                  N = 3 states: those at C, E and G
    sequence     ·   ·   c   d   e   f   G
    later ones           ·   ·   e   f   g   h   I
                                 ·   ·   g   h   i   j   K
                                         ·   ·   i   j   k   …      the state at G exists from step k on
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from atari_dqn.replay.sampling import Sampling
from atari_dqn.replay.states import StateTable


class LaterStates:
    """Gathers the states that were stored at the frames after the burn-in of sequences.

    B sequences of `length` steps, N frames with a stored state, R numbers of a state.
    """

    def __init__(
        self, replay: Sampling[Any], states: StateTable, *, length: int, burn_in: int, period: int
    ) -> None:
        self._replay, self._states = replay, states
        self.positions = tuple(range(period - burn_in, length + 1, period))
        """Positions of these frames in a sequence; the first step that is learned from has position 0."""
        device = replay.ring.device
        self._later = torch.tensor(self.positions, device=device)
        self._needed = self._later + burn_in + length - period
        """Position of the step that the sequence of each state needs in order to exist.

        Without this step another state may have taken the slot.
        """

    def gather(self, index: Int64[Tensor, "B"]) -> tuple[Float[Tensor, "B N R"], Bool[Tensor, "B N"]]:
        """Gather the states in the sequences that begin at these indices, and whether they exist.

        If a state exists, so do all earlier ones. A sequence that begins its episode has none: it starts from
        the zero state, which is never stale.
        """
        ring, place = self._replay.ring, index.device
        index = index.to(ring.device)
        rows = ring.ahead(index[:, None], self._later)
        states = self._states.read(rows.flatten()).view(*rows.shape, -1)
        steps = ring.ahead(index[:, None], torch.arange(int(self._needed[-1]) + 1, device=ring.device))
        follows = ring.is_step[steps].cumprod(dim=1).bool()[:, self._needed]
        age = self._replay.age_steps(index) // ring.num_envs
        exists = follows & (age[:, None] > self._needed) & ~ring.start[index][:, None]
        return states.to(place), exists.to(place)
