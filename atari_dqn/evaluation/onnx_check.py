"""Compare an ONNX model with its network on the frames of games that the network plays."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float32, Int64
from numpy.typing import NDArray

from atari_dqn.agent.memory import RecurrentQNetwork
from atari_dqn.agent.network import QNetwork
from atari_dqn.agent.recurrent_actor import Past
from atari_dqn.envs.games import make_envs
from atari_dqn.envs.stacking import FrameStacker
from atari_dqn.errors import HaltedError
from atari_dqn.evaluation.evaluate import STREAM, evaluation_env
from atari_dqn.evaluation.frozen_agent import FrozenAgent
from atari_dqn.minibatch import NO_ACTION
from atari_dqn.rng import numpy_stream
from atari_dqn.types import StepBatch

FRAMES = 1_000
TOLERANCE = 1e-4
"""Largest difference of a q-value, times its size where that is above 1."""
_ENVS = 8
_EPSILON = 0.1


@dataclass(frozen=True, kw_only=True)
class OnnxCheck:
    """The differences between a model and its network."""

    frames: int
    largest_difference: float
    """Largest difference of a q-value in units of max(1, |q|)."""
    other_actions: int
    """Frames with another greedy action, other than ties within the tolerance."""
    ties: int
    """Frames with another greedy action among q-values that differ by less than the tolerance."""
    low_precision: tuple[float, int] | None
    """Largest difference and other greedy actions of the agent's own network, if it computes in bf16."""

    def __str__(self) -> str:
        text = f"{self.frames:,} frames: q-values within {self.largest_difference:.1e}, "
        text += f"{self.other_actions} other greedy actions, {self.ties} ties"
        if self.low_precision is None:
            return text
        difference, actions = self.low_precision
        return f"{text}; the agent's own bf16 differs by {difference:.1e} and in {actions} greedy actions"


def check_onnx(
    model: bytes, agent: FrozenAgent, network: QNetwork, *, frames: int = FRAMES, tolerance: float = TOLERANCE
) -> OnnxCheck:
    """Compare a model with its network in games that the network plays; `HaltedError` if they differ.

    `network`: that of `exact_network`. Both carry their own recurrent states from frame to frame.
    """
    players: list[_InOnnx | _InTorch] = [_InOnnx(model, agent), _InTorch(network, agent)]
    is_low = agent.network.dtype != network.dtype
    if is_low:
        players.append(_InTorch(agent.network, agent))
    found = np.stack(_play(agent, players, steps=-(-frames // _ENVS)), axis=1).reshape(
        len(players), -1, agent.info.num_actions
    )
    own, other_actions, ties = _compare(found[0], found[1], tolerance)
    low = _compare(found[2], found[1], 0.0)[:2] if is_low else None
    check = OnnxCheck(
        frames=found.shape[1],
        largest_difference=own,
        other_actions=other_actions,
        ties=ties,
        low_precision=low,
    )
    if not own <= tolerance or other_actions:
        raise HaltedError(f"the ONNX model differs from the agent ({check}); the ONNX file was not written")
    return check


class _InTorch:
    """Computes q-values in PyTorch, with a past if the network has memory."""

    def __init__(self, network: QNetwork, agent: FrozenAgent) -> None:
        self._network, self._device = network, next(network.parameters()).device
        self._past = (
            Past(
                network,
                envs=_ENVS,
                max_abs_reward=agent.spec.learner.max_abs_reward,
                device=self._device,
            )
            if isinstance(network, RecurrentQNetwork)
            else None
        )

    @torch.inference_mode()
    def q_values(self, stacks: NDArray[np.uint8]) -> Float32[np.ndarray, "E A"]:
        """Compute the q-values of the newest observations."""
        frames = torch.from_numpy(stacks).to(self._device)
        compute = self._network.q_values if self._past is None else self._past.q_values
        values: NDArray[np.float32] = compute(frames).cpu().numpy()
        return values

    def observe(self, actions: Int64[np.ndarray, "E"], step: StepBatch) -> None:
        """Continue with the next frames."""
        if self._past is not None:
            self._past.observe(actions, step)


class _InOnnx:
    """Computes q-values in onnxruntime; the inputs other than frames are kept as the model's user would."""

    def __init__(self, model: bytes, agent: FrozenAgent) -> None:
        from onnxruntime import InferenceSession

        self._session = InferenceSession(model, providers=["CPUExecutionProvider"])
        self._bound = agent.spec.learner.max_abs_reward
        widths = {value.name: value.shape[-1] for value in self._session.get_inputs()}
        self._past: dict[str, Any] = {}
        if "state" in widths:
            self._past = {
                "last_action": np.full(_ENVS, NO_ACTION),
                "last_reward": np.zeros(_ENVS, np.float32),
                "state": np.zeros((_ENVS, widths["state"]), np.float32),
            }

    def q_values(self, stacks: NDArray[np.uint8]) -> Float32[np.ndarray, "E A"]:
        """Compute the q-values of the newest observations."""
        q, *states = self._session.run(None, {"observation": stacks, **self._past})
        if states:
            (self._past["state"],) = states
        values: NDArray[np.float32] = q
        return values

    def observe(self, actions: Int64[np.ndarray, "E"], step: StepBatch) -> None:
        """Continue with the next frames; a new game begins without a past."""
        if self._past:
            reward = np.clip(step.reward, -self._bound, self._bound).astype(np.float32)
            self._past["last_action"] = np.where(step.first, NO_ACTION, actions)
            self._past["last_reward"] = np.where(step.first, np.float32(0), reward)
            self._past["state"] = np.where(step.first[:, None], np.float32(0), self._past["state"])


def _play(
    agent: FrozenAgent, players: list[_InOnnx | _InTorch], *, steps: int
) -> list[list[NDArray[np.float32]]]:
    """Play ε-greedily for the second player; return the q-values of every player in each step."""
    spec = replace(agent.spec, env=evaluation_env(agent.spec))
    envs = make_envs(
        game=spec.game, env=spec.env, num_envs=_ENVS, seed=spec.seed, stream=STREAM, power_on_reset=True
    )
    stacker = FrameStacker(envs=_ENVS, stack=spec.env.stack_frames, frame_shape=agent.info.frame_shape)
    rng, found = numpy_stream(spec.seed, STREAM, "onnx"), []
    with closing(envs):
        step, actions = envs.reset(), np.zeros(_ENVS, dtype=np.int64)
        for _ in range(steps):
            stacks = stacker.push(step)
            for player in players:
                player.observe(actions, step)
            found.append([player.q_values(stacks) for player in players])
            explores = rng.random(_ENVS) < _EPSILON
            drawn = rng.integers(agent.info.num_actions, size=_ENVS)
            actions = np.where(explores, drawn, found[-1][1].argmax(axis=1))
            envs.send(actions)
            step = envs.recv()
    return found


def _compare(
    q: Float32[np.ndarray, "N A"], expected: Float32[np.ndarray, "N A"], tolerance: float
) -> tuple[float, int, int]:
    """Return the largest difference, the frames with another greedy action, and those that are ties."""
    scale = np.maximum(1.0, np.abs(expected))
    difference = float((np.abs(q - expected) / scale).max())
    rows, mine, theirs = np.arange(len(q)), q.argmax(axis=1), expected.argmax(axis=1)
    gap = expected[rows, theirs] - expected[rows, mine]
    is_tie = gap <= 2 * tolerance * scale.max(axis=1)
    other = mine != theirs
    return difference, int((other & ~is_tie).sum()), int((other & is_tie).sum())
