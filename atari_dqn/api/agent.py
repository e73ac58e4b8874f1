"""Trained agents: load one, compute its q-values, let it act and evaluate it.

B observations, S stacked frames, H×W one frame, A actions, R numbers of a recurrent state.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from atari_dqn.agent.memory import RecurrentQNetwork
from atari_dqn.api.arguments import check_count, path_of
from atari_dqn.errors import UserError
from atari_dqn.evaluation.checkpoint_score import CheckpointScore, evaluate_checkpoint
from atari_dqn.evaluation.frozen_agent import FrozenAgent, load_frozen
from atari_dqn.machine.devices import resolve_device
from atari_dqn.minibatch import NO_ACTION
from atari_dqn.run.recorded_scores import RecordedScore, scores_of
from atari_dqn.spec.named_protocols import ProtocolName
from atari_dqn.spec.schema import Spec


@dataclass(frozen=True, eq=False)
class AgentState:
    """The past of an agent with memory in each of B games: an argument and a result of `Agent.act`."""

    memory: Tensor
    """f32[B, R]."""
    last_action: Tensor
    """i64[B]."""


def load(path: str | Path, *, device: str = "auto") -> Agent:
    """Load the agent of a run's latest checkpoint, of a checkpoint, or of an archive.

    PyTorch computes with as many threads as in the run from here on, so that rounding is the same. Raise
    `UserError` if the path is none of these, `DamagedError` if a file is damaged.

    >>> import atari_dqn as dqn
    >>> agent = dqn.load("outputs/catch")
    >>> agent.game, agent.env_frames
    ('catch', 2000)
    """
    source = path_of("path", path, expected="the path of a run, a checkpoint or an archive")
    return Agent(load_frozen(source, resolve_device(device, where="device")))


class Agent:
    """A trained agent: a network with the spec and the scores of its run.

    >>> import atari_dqn as dqn
    >>> agent = dqn.load("outputs/catch")
    >>> env = dqn.make_env(agent.spec, evaluation=True)
    >>> observation, info = env.reset()
    >>> agent.q_values(observation).shape
    (3,)
    >>> action, state = agent.act(observation)
    >>> agent.action_names[action] in ("noop", "left", "right")
    True
    >>> env.close()
    """

    def __init__(self, frozen: FrozenAgent) -> None:
        """Wrap a loaded network; programs use `load`."""
        self.frozen = frozen

    @property
    def spec(self) -> Spec:
        """The complete spec of the run that trained it."""
        return self.frozen.spec

    @property
    def game(self) -> str:
        """The game, an ale-py ROM id."""
        return self.spec.game

    @property
    def action_names(self) -> tuple[str, ...]:
        """The name of each action by its index."""
        return self.frozen.info.action_names

    @property
    def env_frames(self) -> int:
        """Emulator frames for which it was trained."""
        return self.frozen.env_frames

    @property
    def scores(self) -> list[RecordedScore]:
        """Every score of its run or archive, with protocols and the return of each game."""
        return scores_of(self.frozen.source)

    def act(
        self,
        observation: NDArray[np.uint8],
        state: AgentState | None = None,
        *,
        reward: float | NDArray[np.floating] = 0.0,
        is_first: bool | NDArray[np.bool_] = False,
    ) -> tuple[int | NDArray[np.int64], AgentState | None]:
        """Select greedy actions for one observation u8[S, H, W], or for B of them, u8[B, S, H, W].

        An agent with memory needs what the previous call returned as `state`, None at the beginning of a
        game, and the reward that its last action had, f[B] for B games. `is_first`, bool[B], marks the games
        of a batch of which this is the first observation: their state and reward are not used. Other agents
        ignore all three and return None. `UserError` for an argument of another type or size.
        """
        q, memory = self._compute(observation, state, reward, is_first)
        actions = q.argmax(dim=1)
        following = None if memory is None else AgentState(memory, actions)
        if observation.ndim == 3:
            return int(actions[0]), following
        return actions.cpu().numpy(), following

    def q_values(
        self,
        observation: NDArray[np.uint8],
        state: AgentState | None = None,
        *,
        reward: float | NDArray[np.floating] = 0.0,
        is_first: bool | NDArray[np.bool_] = False,
    ) -> NDArray[np.float32]:
        """Compute the q-values of one observation, f32[A], or of B of them, f32[B, A]; see `act`.

        Their unit is that of rewards, clipped to ±`learner.max_abs_reward`. An agent that was trained with
        `learner.value_rescaling` has h(q) in place of q.
        """
        q = self._compute(observation, state, reward, is_first)[0].cpu().numpy()
        values: NDArray[np.float32] = q[0] if observation.ndim == 3 else q
        return values

    def evaluate(
        self,
        *,
        protocol: ProtocolName = "run",
        episodes: int | None = None,
        envs: int | None = None,
        on_progress: Callable[[int, int], None] | None = None,
    ) -> CheckpointScore:
        """Play the games of `dqn eval` under a protocol and return the score; nothing is written.

        `UserError` for an unknown protocol, and for `episodes` or `envs` below 1.

        >>> import atari_dqn as dqn
        >>> result = dqn.load("outputs/catch").evaluate(episodes=3)
        >>> len(result.score.returns), result.protocol.episodes
        (3, 3)
        """
        check_count("episodes", episodes)
        check_count("envs", envs)
        return evaluate_checkpoint(
            self.frozen, protocol=protocol, episodes=episodes, envs=envs, on_progress=on_progress
        )

    @torch.no_grad()  # `inference_mode` would return tensors that a caller cannot change
    def _compute(
        self,
        observation: NDArray[np.uint8],
        state: AgentState | None,
        reward: float | NDArray[np.floating],
        is_first: bool | NDArray[np.bool_],
    ) -> tuple[Tensor, Tensor | None]:
        """Compute the q-values f32[B, A], and the recurrent state after them, if there is one."""
        network = self.frozen.network
        device = next(network.parameters()).device
        frames = torch.from_numpy(self._checked(observation)).to(device)
        if not isinstance(network, RecurrentQNetwork):
            return network(frames), None
        batch, bound = len(frames), self.spec.learner.max_abs_reward
        past = _state(state, batch, network.memory.width, device)
        last_reward = torch.from_numpy(np.clip(_rewards(reward, batch), -bound, bound)).to(device)
        first = torch.from_numpy(_first_flags(is_first, batch)).to(device)
        q, memory = network.unroll(
            frames,
            past.last_action.masked_fill(first, NO_ACTION)[:, None],
            last_reward.masked_fill(first, 0.0)[:, None],
            past.memory.masked_fill(first[:, None], 0.0),
        )
        return q[:, 0], memory

    def _checked(self, observation: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Return observations with a batch dimension; `UserError` for another type or shape."""
        expected = (self.spec.env.stack_frames, *self.frozen.info.frame_shape)
        given: object = observation
        if not isinstance(given, np.ndarray):
            raise UserError(
                f"observation: found an object of type {type(given).__name__}, "
                f"expected a NumPy array, uint8 of shape {expected}, or a batch of at least one such"
            )
        is_batch = observation.ndim == 4 and len(observation) > 0
        if (
            observation.dtype != np.uint8
            or observation.shape[-3:] != expected
            or not (observation.ndim == 3 or is_batch)
        ):
            raise UserError(
                f"observation: found {observation.dtype} of shape {observation.shape}, "
                f"expected uint8 of shape {expected}, or a batch of at least one such"
            )
        # torch takes neither negative strides nor read-only memory
        return np.require(observation.reshape(-1, *expected), requirements=("C", "W"))


def _state(state: AgentState | None, batch: int, width: int, device: torch.device) -> AgentState:
    """Return the state of each game, an initial one for None; `UserError` for that of another batch."""
    if state is None:
        return AgentState(
            torch.zeros((batch, width), device=device), torch.full((batch,), NO_ACTION, device=device)
        )
    given: object = state
    if not isinstance(given, AgentState):
        raise UserError(
            f"state: found an object of type {type(given).__name__}, expected what the previous call returned"
        )
    if state.memory.shape != (batch, width):
        raise UserError(
            f"state: found {state.memory.shape[1]} numbers for each of {len(state.memory)} games, "
            f"expected {width} for each of {batch}; a state belongs to the games of its own call"
        )
    return state


def _rewards(reward: float | NDArray[np.floating], batch: int) -> NDArray[np.float32]:
    """Return the reward of each game, f32[B]; `UserError` for neither one number nor one for each."""
    try:
        rewards = np.asarray(reward, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise UserError(f"reward: found {reward!r}, expected a number, or one for each game") from error
    if rewards.shape not in ((), (batch,), (batch, 1)):  # earlier versions took only the last for several
        raise UserError(f"reward: found shape {rewards.shape}, expected a number or shape ({batch},)")
    if not np.isfinite(rewards).all():
        raise UserError(f"reward: found {reward!r}, expected finite numbers")
    return np.broadcast_to(rewards.reshape(-1), batch).copy()


def _first_flags(is_first: bool | NDArray[np.bool_], batch: int) -> NDArray[np.bool_]:
    """Return for each game whether it begins, bool[B]; `UserError` for another type or number."""
    flags = np.asarray(is_first)
    if flags.dtype != np.bool_ or flags.shape not in ((), (batch,)):
        raise UserError(
            f"is_first: found {flags.dtype} of shape {flags.shape}, "
            f"expected True or False, or bool of shape ({batch},)"
        )
    return np.broadcast_to(flags, batch).copy()
