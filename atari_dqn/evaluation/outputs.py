"""Compute the outputs of a frozen network in the games of an evaluation.

The frames of game i are in row i mod 8 of batches of 8, because batches of other shapes may round
differently.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from jaxtyping import Float, Float32, Int64, UInt8
from torch import Tensor

from atari_dqn.agent.distributions import Categorical, Scalar, ValueDistribution
from atari_dqn.agent.memory import RecurrentQNetwork
from atari_dqn.agent.network import QNetwork
from atari_dqn.agent.recurrent_actor import Past
from atari_dqn.evaluation.traces import BestReturn
from atari_dqn.machine.sizes import MOST_QUANTILES_TRACED
from atari_dqn.types import StepBatch

FORWARD_BATCH = 8
Stacks = UInt8[np.ndarray, "E S H W"]


@dataclass(frozen=True, slots=True)
class Output:
    """The network output for one environment."""

    q_values: Float32[np.ndarray, "A"]
    best_return: BestReturn | None
    """None without a value distribution, or if it is not needed."""


class Outputs(Protocol):
    """Computes the network's outputs for the environments of an evaluation."""

    def compute(
        self,
        stacks: Stacks,
        playing: Int64[np.ndarray, "E"],
        *,
        acting: Int64[np.ndarray, "n"],
        needed: Int64[np.ndarray, "m"],
    ) -> dict[int, Output]:
        """Compute the outputs for the environments in `needed`, all of which act.

        `playing` has the number of each environment's game, `acting` the environments that select an action.
        """
        ...

    def observe(self, actions: Int64[np.ndarray, "E"], step: StepBatch) -> None:
        """Continue with the step of every environment that followed these actions."""
        ...

    def begin_game(self, slot: int) -> None:
        """Begin the next game of an environment."""
        ...


class MakeOutputs(Protocol):
    """Makes the outputs for a number of environments."""

    def __call__(self, *, envs: int) -> Outputs:
        """Make the outputs for `envs` environments."""
        ...


def make_outputs(
    network: QNetwork, *, envs: int, max_abs_reward: float, with_returns: bool
) -> FeedForwardOutputs | RecurrentOutputs:
    """Make what computes the outputs of a network: with its own memory, or without."""
    if isinstance(network, RecurrentQNetwork):
        return RecurrentOutputs(network, envs=envs, max_abs_reward=max_abs_reward)
    return FeedForwardOutputs(network, with_returns=with_returns)


class FeedForwardOutputs:
    """Outputs of a network without memory.

    If the frames of a game do not change, the output is reused: with frozen weights, equal frames in the same
    row give equal outputs.
    """

    def __init__(self, network: QNetwork, *, with_returns: bool) -> None:
        self._network, self._with_returns = network, with_returns
        self._device = next(network.parameters()).device
        self._known: dict[int, tuple[UInt8[np.ndarray, "S H W"], Output]] = {}
        """The last input frames by environment, with the output for them."""

    @torch.inference_mode()
    def compute(
        self,
        stacks: Stacks,
        playing: Int64[np.ndarray, "E"],
        *,
        acting: Int64[np.ndarray, "n"],
        needed: Int64[np.ndarray, "m"],
    ) -> dict[int, Output]:
        """Compute the outputs for some environments, reusing those of unchanged frames."""
        del acting
        changed = [slot for slot in needed.tolist() if not self._is_unchanged(slot, stacks[slot])]
        for batch in _batches(changed, playing):
            frames = _batch_of(stacks, batch)
            prediction = self._network.distribution(torch.from_numpy(frames).to(self._device))
            q_values = prediction.q_values()
            values = q_values.cpu().numpy()
            best_returns = _best_returns(prediction, q_values) if self._with_returns else [None] * len(values)
            for row, slot in batch.items():
                self._known[slot] = (frames[row], Output(values[row], best_returns[row]))
        return {slot: self._known[slot][1] for slot in needed.tolist()}

    def observe(self, actions: Int64[np.ndarray, "E"], step: StepBatch) -> None:
        """Do nothing: there is no memory."""

    def begin_game(self, slot: int) -> None:
        """Forget the last output, because the next game may use another row of the batch."""
        self._known.pop(slot, None)

    def _is_unchanged(self, slot: int, frames: UInt8[np.ndarray, "S H W"]) -> bool:
        return slot in self._known and np.array_equal(self._known[slot][0], frames)


class RecurrentOutputs:
    """Outputs of a network with memory, which advances in every step that is not a reset."""

    def __init__(self, network: RecurrentQNetwork, *, envs: int, max_abs_reward: float) -> None:
        self._device = next(network.parameters()).device
        self._past = Past(network, envs=envs, max_abs_reward=max_abs_reward, device=self._device)

    def compute(
        self,
        stacks: Stacks,
        playing: Int64[np.ndarray, "E"],
        *,
        acting: Int64[np.ndarray, "n"],
        needed: Int64[np.ndarray, "m"],
    ) -> dict[int, Output]:
        """Compute the outputs for all environments that act, and return those that are needed."""
        found: dict[int, Output] = {}
        for batch in _batches(acting.tolist(), playing):
            frames = torch.from_numpy(_batch_of(stacks, batch)).to(self._device)
            q_values = self._past.q_values(frames, list(batch), list(batch.values()))
            values = q_values.cpu().numpy()
            found |= {slot: Output(values[row], None) for row, slot in batch.items()}
        return {slot: found[slot] for slot in needed.tolist()}

    def observe(self, actions: Int64[np.ndarray, "E"], step: StepBatch) -> None:
        """Continue with the next frames; a new game begins without a past."""
        self._past.observe(actions, step)

    def begin_game(self, slot: int) -> None:
        """Do nothing: the game's first frame clears the past."""


def _batch_of(stacks: Stacks, batch: dict[int, int]) -> UInt8[np.ndarray, "N S H W"]:
    """Return the frames of a batch: those of each environment in its row, and zeros elsewhere."""
    frames = np.zeros((FORWARD_BATCH, *stacks.shape[1:]), dtype=np.uint8)
    frames[list(batch)] = stacks[list(batch.values())]
    return frames


def _best_returns(prediction: ValueDistribution, q_values: Float[Tensor, "E A"]) -> list[BestReturn | None]:
    """Return the value distribution of the greedy action of each row; None for scalar values."""
    if isinstance(prediction, Scalar):
        return [None] * len(q_values)
    best = q_values.argmax(dim=1)
    rows = torch.arange(len(best), device=best.device)
    points, mass = (part[rows, best] for part in prediction.distribution())
    atoms, count = isinstance(prediction, Categorical), points.shape[1]
    if not atoms and count > MOST_QUANTILES_TRACED:
        kept = torch.linspace(0, count - 1, MOST_QUANTILES_TRACED, device=best.device).round().long()
        points, mass = points[:, kept], torch.full_like(mass[:, kept], 1 / MOST_QUANTILES_TRACED)
    return [
        BestReturn(points=points_of, mass=mass_of, atoms=atoms)
        for points_of, mass_of in zip(points.cpu().numpy(), mass.cpu().numpy(), strict=True)
    ]


def _batches(envs: list[int], playing: Int64[np.ndarray, "E"]) -> list[dict[int, int]]:
    """Group environments into batches by row, which depends on the episode number alone."""
    batches: list[dict[int, int]] = []
    for slot in envs:
        row = int(playing[slot]) % FORWARD_BATCH
        batch = next((batch for batch in batches if row not in batch), None)
        if batch is None:
            batch = {}
            batches.append(batch)
        batch[row] = slot
    return batches
