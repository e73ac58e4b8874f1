"""Adapters of environments to Gymnasium's `Env` and `VectorEnv`, for other programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete, MultiDiscrete
from gymnasium.vector import AutoresetMode, VectorEnv
from jaxtyping import Bool, Float64, Int64, UInt8
from numpy.typing import NDArray

from atari_dqn.envs.stacking import FrameStacker
from atari_dqn.types import Environments, StepBatch

VectorStep = tuple[
    UInt8[np.ndarray, "E S H W"],
    Float64[np.ndarray, "E"],
    Bool[np.ndarray, "E"],
    Bool[np.ndarray, "E"],
    dict[str, Any],
]


class GymnasiumVectorEnv(VectorEnv[NDArray[np.uint8], NDArray[np.int64], NDArray[Any]]):
    """Environments as a `gymnasium.vector.VectorEnv` with `AutoresetMode.NEXT_STEP`.

    An observation, u8[E, S, H, W], is the stack of the S newest frames, newest last; frames before the first
    one of an episode are zero. `info["life_lost"]`, bool[E], marks the environments that lost a life.
    """

    def __init__(
        self, build_envs: Callable[[int], Environments], *, stack_frames: int, seed: int = 0
    ) -> None:
        """Build the environments with `seed`; `reset(seed=...)` builds them again with another seed."""
        self.metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP, "render_modes": []}
        self._build_envs, self._has_begun = build_envs, False
        self._envs = build_envs(seed)
        self.num_envs = self._envs.num_envs
        info = self._envs.info
        shape = (stack_frames, *info.frame_shape)
        self._stacker = FrameStacker(envs=self.num_envs, stack=stack_frames, frame_shape=info.frame_shape)
        self.single_observation_space = Box(0, 255, shape, np.uint8)
        self.observation_space = Box(0, 255, self._stacker.frames.shape, np.uint8)
        self.single_action_space = Discrete(info.num_actions)
        self.action_space = MultiDiscrete([info.num_actions] * self.num_envs)

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.uint8], dict[str, Any]]:
        """Begin a new episode in every environment; with `seed`, build the environments again first.

        `ValueError` for options, for a list of seeds, because one seed determines the random streams of all
        environments, and after `close`.
        """
        self._refuse_closed("reset")
        if options:
            raise ValueError(f"unknown options {sorted(options)}: reset takes none")
        if isinstance(seed, list):
            raise ValueError(f"expected one seed for all environments, got the list {seed}")
        super().reset(seed=seed)
        if seed is not None:
            self._envs.close()
            self._envs = self._build_envs(seed)
        batch = self._envs.reset()
        self._has_begun = True
        return self._observe(batch), {"life_lost": batch.life_lost.copy()}

    def step(self, actions: Int64[np.ndarray, "E"]) -> VectorStep:
        """Step every environment; one whose episode has ended ignores its action and resets.

        `ValueError` for an action that there is not, before the first `reset` and after `close`.
        """
        self._refuse_closed("step")
        if not self._has_begun:
            raise ValueError("step before the first reset: call reset first")
        self._envs.send(self._checked(np.asarray(actions)))
        batch = self._envs.recv()
        return (
            self._observe(batch),
            batch.reward.copy(),
            batch.terminated.copy(),
            batch.truncated.copy(),
            {"life_lost": batch.life_lost.copy()},
        )

    def _refuse_closed(self, method: str) -> None:
        if self.closed:
            raise ValueError(f"{method} after close: make another environment")

    def _checked(self, actions: NDArray[Any]) -> Int64[np.ndarray, "E"]:
        most = self._envs.info.num_actions - 1
        is_valid = actions.shape == (self.num_envs,) and np.issubdtype(actions.dtype, np.integer)
        if not is_valid or actions.min() < 0 or actions.max() > most:
            raise ValueError(
                f"found actions {actions.tolist()}, expected {self.num_envs} integers from 0 to {most}"
            )
        return actions.astype(np.int64)

    def _observe(self, batch: StepBatch) -> UInt8[np.ndarray, "E S H W"]:
        return self._stacker.push(batch).copy()

    def close_extras(self, **kwargs: Any) -> None:  # noqa: ARG002 — the base class passes some
        """Close the environments."""
        self._envs.close()


class GymnasiumEnv(gymnasium.Env[NDArray[np.uint8], np.int64]):
    """One environment as a `gymnasium.Env`, with observations u8[S, H, W]."""

    def __init__(
        self, build_envs: Callable[[int], Environments], *, stack_frames: int, seed: int = 0
    ) -> None:
        """Build the environment with `seed`; `ValueError` if `build_envs` makes more than one."""
        self._vector = GymnasiumVectorEnv(build_envs, stack_frames=stack_frames, seed=seed)
        if self._vector.num_envs != 1:
            self._vector.close()
            raise ValueError(
                f"expected one environment, got {self._vector.num_envs}; GymnasiumVectorEnv takes more"
            )
        self._is_over = False
        self.metadata = {"render_modes": []}
        self.observation_space = self._vector.single_observation_space
        self.action_space = self._vector.single_action_space

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.uint8], dict[str, Any]]:
        """Begin a new episode; `ValueError` for options, and after `close`."""
        super().reset(seed=seed)
        observation, info = self._vector.reset(seed=seed, options=options)
        self._is_over = False
        return observation[0], {"life_lost": bool(info["life_lost"][0])}

    def step(self, action: np.int64) -> tuple[NDArray[np.uint8], float, bool, bool, dict[str, Any]]:
        """Step the environment.

        `ValueError` for an action that there is not, before the first `reset`, after the end of an episode
        until the next `reset`, and after `close`.
        """
        if self._is_over and not self._vector.closed:
            raise ValueError("step after the end of an episode: call reset first")
        observation, reward, terminated, truncated, info = self._vector.step(np.array([action]))
        self._is_over = bool(terminated[0] or truncated[0])
        facts = {"life_lost": bool(info["life_lost"][0])}
        return observation[0], float(reward[0]), bool(terminated[0]), bool(truncated[0]), facts

    def close(self) -> None:
        """Close the environment."""
        self._vector.close()
