"""Gymnasium's faces of lanes, so that other programs can play them."""

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
from atari_dqn.types import Lanes, StepBatch

VectorStep = tuple[
    UInt8[np.ndarray, "E S H W"],
    Float64[np.ndarray, "E"],
    Bool[np.ndarray, "E"],
    Bool[np.ndarray, "E"],
    dict[str, Any],
]


class LanesVectorEnv(VectorEnv[NDArray[np.uint8], NDArray[np.int64], NDArray[Any]]):
    """Lanes as a `gymnasium.vector.VectorEnv` that resets itself in the step after an ending.

    Observations are stacks of the newest frames, the newest last, zero before an episode's first:
    u8[E, S, H, W]. `info["life_lost"]` tells which lanes lost a life.
    """

    def __init__(self, build_lanes: Callable[[int], Lanes], *, stack_frames: int, seed: int = 0) -> None:
        """Build the lanes with `seed`; `reset(seed=...)` builds them anew with another."""
        self.metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP, "render_modes": []}
        self._build_lanes = build_lanes
        self._lanes = build_lanes(seed)
        self.num_envs = self._lanes.num_lanes
        info = self._lanes.info
        shape = (stack_frames, *info.frame_shape)
        self._stacker = FrameStacker(
            lanes=self.num_envs, stack=stack_frames, frame_shape=self._lanes.info.frame_shape
        )
        self.single_observation_space = Box(0, 255, shape, np.uint8)
        self.observation_space = Box(0, 255, self._stacker.frames.shape, np.uint8)
        self.single_action_space = Discrete(info.num_actions)
        self.action_space = MultiDiscrete([info.num_actions] * self.num_envs)

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.uint8], dict[str, Any]]:
        """Begin a new episode on every lane; with `seed`, the first one of lanes made with it.

        `ValueError` for a list of seeds, as one seed makes the streams of all lanes, and for any option.
        """
        if options:
            raise ValueError(f"unknown options {sorted(options)}: reset takes none")
        if isinstance(seed, list):
            raise ValueError(f"expected one seed for all lanes, got the list {seed}")
        super().reset(seed=seed)
        if seed is not None:
            self._lanes.close()
            self._lanes = self._build_lanes(seed)
        batch = self._lanes.reset()
        return self._observe(batch), {"life_lost": batch.life_lost.copy()}

    def step(self, actions: Int64[np.ndarray, "E"]) -> VectorStep:
        """Step every lane; a lane whose episode has ended ignores its action and begins the next."""
        self._lanes.send(np.asarray(actions, np.int64))
        batch = self._lanes.recv()
        return (
            self._observe(batch),
            batch.reward.copy(),
            batch.terminated.copy(),
            batch.truncated.copy(),
            {"life_lost": batch.life_lost.copy()},
        )

    def _observe(self, batch: StepBatch) -> UInt8[np.ndarray, "E S H W"]:
        return self._stacker.push(batch).copy()

    def close_extras(self, **kwargs: Any) -> None:  # noqa: ARG002 — the base class passes some
        """Close the lanes."""
        self._lanes.close()


class LaneEnv(gymnasium.Env[NDArray[np.uint8], np.int64]):
    """A single lane as a `gymnasium.Env`; observations are u8[S, H, W]."""

    def __init__(self, build_lanes: Callable[[int], Lanes], *, stack_frames: int, seed: int = 0) -> None:
        """Build the lane with `seed`; `ValueError` unless `build_lanes` makes exactly one."""
        self._vector = LanesVectorEnv(build_lanes, stack_frames=stack_frames, seed=seed)
        if self._vector.num_envs != 1:
            self._vector.close()
            raise ValueError(f"expected one lane, got {self._vector.num_envs}; LanesVectorEnv takes more")
        self.metadata = {"render_modes": []}
        self.observation_space = self._vector.single_observation_space
        self.action_space = self._vector.single_action_space

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.uint8], dict[str, Any]]:
        """Begin a new episode."""
        super().reset(seed=seed)
        observation, info = self._vector.reset(seed=seed, options=options)
        return observation[0], {"life_lost": bool(info["life_lost"][0])}

    def step(self, action: np.int64) -> tuple[NDArray[np.uint8], float, bool, bool, dict[str, Any]]:
        """Step the lane."""
        observation, reward, terminated, truncated, info = self._vector.step(np.array([action]))
        facts = {"life_lost": bool(info["life_lost"][0])}
        return observation[0], float(reward[0]), bool(terminated[0]), bool(truncated[0]), facts

    def close(self) -> None:
        """Close the lane."""
        self._vector.close()
