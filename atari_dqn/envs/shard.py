"""The environments of one process."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Protocol

import numpy as np
from jaxtyping import Int64

from atari_dqn.envs.emulator import Emulator
from atari_dqn.envs.environment import Environment
from atari_dqn.envs.episode import EpisodeRules, EpisodeStreams
from atari_dqn.envs.frame_callback import FrameCallback
from atari_dqn.envs.preprocess import Preprocessor
from atari_dqn.spec.schema import Env
from atari_dqn.types import GameInfo, StateDict, StepBatch

_GROUP_SIZE = 8
"""Environments preprocessed together: enough to amortise a call, few enough for their screens to stay
cached."""


class Shard:
    """Environments that are stepped one after the other and write their results into given arrays."""

    def __init__(
        self, emulators: Sequence[Emulator], streams: Sequence[EpisodeStreams], env: Env, info: GameInfo
    ) -> None:
        rules = EpisodeRules.from_env(env)
        self.emulators = tuple(emulators)
        self._envs = [
            Environment(emulator, rules, episodes)
            for emulator, episodes in zip(emulators, streams, strict=True)
        ]
        groups = [slice(begin, begin + _GROUP_SIZE) for begin in range(0, len(emulators), _GROUP_SIZE)]
        self._groups = [(group, _preprocessor(emulators[group], env)) for group in groups]
        self.info = info
        self._flickers = env.flicker_probability > 0

    def add_frame_callback(self, callback: FrameCallback) -> None:
        """Call `callback` with the emulator of each environment after each reset and each frame."""
        for environment in self._envs:
            environment.add_frame_callback(callback)

    def play_episodes(self, episodes: Sequence[int]) -> None:
        """From the next reset on, play only the episodes with these numbers, as in `EpisodeStreams`."""
        for environment in self._envs:
            environment.play_episodes(episodes)

    def reset(self, out: StepBatch) -> None:
        """Begin a new episode in every environment and write the first frames to `out`."""
        for group, preprocessor in self._groups:
            for environment, screens in zip(self._envs[group], preprocessor.screens, strict=True):
                environment.reset(screens)
            out.frame[group] = preprocessor.process()
        self._write_results(out)

    def step(self, actions: Int64[np.ndarray, "E"], out: StepBatch) -> None:
        """Step every environment and write the results to `out`."""
        for group, preprocessor in self._groups:
            envs = zip(self._envs[group], preprocessor.screens, actions[group].tolist(), strict=True)
            for environment, screens, action in envs:
                environment.step(action, screens)
            out.frame[group] = preprocessor.process()
        self._write_results(out)

    def _write_results(self, out: StepBatch) -> None:
        """Write rewards and flags, and make obscured frames black."""
        envs = self._envs
        if self._flickers:
            out.frame[[environment.obscured for environment in envs]] = 0
        out.reward[:] = [environment.reward for environment in envs]
        out.terminated[:] = [environment.terminated for environment in envs]
        out.truncated[:] = [environment.truncated for environment in envs]
        out.life_lost[:] = [environment.life_lost for environment in envs]
        out.first[:] = [environment.first for environment in envs]

    def state_dicts(self) -> list[StateDict]:
        """Return the state of each environment."""
        return [environment.state_dict() for environment in self._envs]

    def load_state_dicts(self, states: Sequence[StateDict]) -> None:
        """Restore the state of each environment; `ValueError` for a state of another game."""
        most = self.info.num_actions - 1
        for state in states:
            if not 0 <= state["executed_action"] <= most:
                raise ValueError(f"executed_action: found {state['executed_action']}, expected 0 to {most}")
        for environment, state in zip(self._envs, states, strict=True):
            environment.load_state_dict(state)


def _preprocessor(emulators: Sequence[Emulator], env: Env) -> Preprocessor:
    return Preprocessor(
        envs=len(emulators),
        screen_shape=emulators[0].screen_shape,
        size_pixels=env.screen_size_pixels,
        method=env.resize,
        palette=emulators[0].palette,
    )


BuildShard = partial[Shard]
"""Builds a shard when called with `envs`, the range of the environments in it."""


class ShardType(Protocol):
    """The type of an entry of the registry of environments: it builds a shard."""

    def __call__(
        self,
        *,
        game: str,
        env: Env,
        envs: range,
        num_envs: int,
        seed: int,
        stream: str,
        power_on_reset: bool,
    ) -> Shard:
        """Build the environments with indices `envs` of `num_envs`; `UserError` for an unknown game."""
        ...


def slot_streams(*, envs: range, num_envs: int, seed: int, stream: str) -> list[EpisodeStreams]:
    """Create the random streams of consecutive environments."""
    return [EpisodeStreams(seed=seed, stream=stream, slot=slot, num_envs=num_envs) for slot in envs]
