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
from atari_dqn.assembly.acceleration import capture
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
    network: QNetwork, *, envs: int, max_abs_reward: float, with_returns: bool, captured: bool
) -> FeedForwardOutputs | RecurrentOutputs:
    """Make what computes the outputs of a network: with its own memory, or without.

    If `captured`, a network without memory on a GPU computes them from a CUDA graph.
    """
    if isinstance(network, RecurrentQNetwork):
        return RecurrentOutputs(network, envs=envs, max_abs_reward=max_abs_reward)
    return FeedForwardOutputs(network, with_returns=with_returns, captured=captured)


class FeedForwardOutputs:
    """Outputs of a network without memory.

    If the frames of a game do not change, the output is reused: with frozen weights, equal frames in the same
    row give equal outputs.
    """

    def __init__(self, network: QNetwork, *, with_returns: bool, captured: bool) -> None:
        self._forward = _Forward(network, with_returns=with_returns)
        self._work = capture(self._forward.run, self._forward.device, wanted=captured)
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
            self._forward.set_frames(frames)
            self._work.run()
            outputs = self._forward.outputs()
            self._known |= {slot: (frames[row], outputs[row]) for row, slot in batch.items()}
        return {slot: self._known[slot][1] for slot in needed.tolist()}

    def observe(self, actions: Int64[np.ndarray, "E"], step: StepBatch) -> None:
        """Do nothing: there is no memory."""

    def begin_game(self, slot: int) -> None:
        """Forget the last output, because the next game may use another row of the batch."""
        self._known.pop(slot, None)

    def _is_unchanged(self, slot: int, frames: UInt8[np.ndarray, "S H W"]) -> bool:
        return slot in self._known and np.array_equal(self._known[slot][0], frames)


class _Forward:
    """The forward pass of a network on batches of one shape, always from and to the same tensors."""

    def __init__(self, network: QNetwork, *, with_returns: bool) -> None:
        self.device = next(network.parameters()).device
        self._network, self._with_returns = network, with_returns
        self._frames = torch.zeros(0, dtype=torch.uint8, device=self.device)
        self._found: tuple[Tensor, _BestReturns | None]

    def set_frames(self, frames: UInt8[np.ndarray, "N S H W"]) -> None:
        """Set the input of the next forward pass."""
        if not len(self._frames):
            self._frames = self._frames.new_zeros(frames.shape)
        self._frames.copy_(torch.from_numpy(frames))

    def run(self) -> None:
        """Compute the outputs."""
        prediction = self._network.distribution(self._frames)
        q_values = prediction.q_values()
        self._found = q_values, _best_returns(prediction, q_values) if self._with_returns else None

    def outputs(self) -> list[Output]:
        """Copy the output of each row to the host."""
        q_values, best = self._found
        values = q_values.cpu().numpy()
        returns = best.rows() if best is not None else [None] * len(values)
        return [Output(*row) for row in zip(values, returns, strict=True)]


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


@dataclass(frozen=True, slots=True)
class _BestReturns:
    """The value distribution of the greedy action of each row, on the network's device."""

    points: Float[Tensor, "N Z"]
    mass: Float[Tensor, "N Z"]
    atoms: bool

    def rows(self) -> list[BestReturn]:
        """Copy the distribution of each row to the host."""
        copied = zip(self.points.cpu().numpy(), self.mass.cpu().numpy(), strict=True)
        return [BestReturn(points=points, mass=mass, atoms=self.atoms) for points, mass in copied]


def _best_returns(prediction: ValueDistribution, q_values: Float[Tensor, "N A"]) -> _BestReturns | None:
    """Select the value distribution of the greedy action of each row; None for scalar values."""
    if isinstance(prediction, Scalar):
        return None
    best = q_values.argmax(dim=1)
    rows = torch.arange(len(best), device=best.device)
    points, mass = (part[rows, best] for part in prediction.distribution())
    atoms, count = isinstance(prediction, Categorical), points.shape[1]
    if not atoms and count > MOST_QUANTILES_TRACED:
        kept = torch.linspace(0, count - 1, MOST_QUANTILES_TRACED, device=best.device).round().long()
        points, mass = points[:, kept], torch.full_like(mass[:, kept], 1 / MOST_QUANTILES_TRACED)
    return _BestReturns(points, mass, atoms)


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
