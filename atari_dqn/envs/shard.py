"""Environments that share a process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from jaxtyping import Int64

from atari_dqn.envs.emulator import Emulator
from atari_dqn.envs.environment import Environment
from atari_dqn.envs.episode import EpisodeRules, EpisodeStreams
from atari_dqn.envs.filming import Camera
from atari_dqn.envs.preprocess import Preprocessor
from atari_dqn.spec.schema import Env
from atari_dqn.types import GameInfo, StateDict, StepBatch

_ENVS_TOGETHER = 8
"""Preprocessed in one go: enough to spread a call's cost, few enough that their screens stay in the cache."""


class Shard:
    """Steps its environments in turn and writes their rows into given arrays."""

    def __init__(
        self, emulators: Sequence[Emulator], streams: Sequence[EpisodeStreams], env: Env, info: GameInfo
    ) -> None:
        rules = EpisodeRules.of(env)
        self.emulators = tuple(emulators)
        self._envs = [
            Environment(emulator, rules, of_slot)
            for emulator, of_slot in zip(emulators, streams, strict=True)
        ]
        places = [slice(begin, begin + _ENVS_TOGETHER) for begin in range(0, len(emulators), _ENVS_TOGETHER)]
        self._groups = [(rows, _preprocessor(emulators[rows], env)) for rows in places]
        self.info = info

    def film(self, camera: Camera) -> None:
        """Show `camera` each environment's emulator after each of its frames from now on."""
        for slot in self._envs:
            slot.film(camera)

    def play_episodes(self, episodes: Sequence[int]) -> None:
        """Play the episodes of these numbers, shared out over all environments, from the next reset on."""
        for slot in self._envs:
            slot.play_episodes(episodes)

    def reset(self, out: StepBatch) -> None:
        """Begin a new episode on every environment and write its first row."""
        for rows, preprocessor in self._groups:
            for slot, screens in zip(self._envs[rows], preprocessor.screens, strict=True):
                slot.reset(screens)
            out.frame[rows] = preprocessor.process()
        self._write_facts(out)

    def step(self, actions: Int64[np.ndarray, "E"], out: StepBatch) -> None:
        """Step every environment and write its row."""
        for rows, preprocessor in self._groups:
            envs = zip(self._envs[rows], preprocessor.screens, actions[rows].tolist(), strict=True)
            for slot, screens, action in envs:
                slot.step(action, screens)
            out.frame[rows] = preprocessor.process()
        self._write_facts(out)

    def _write_facts(self, out: StepBatch) -> None:
        envs = self._envs
        out.reward[:] = [slot.reward for slot in envs]
        out.terminated[:] = [slot.terminated for slot in envs]
        out.truncated[:] = [slot.truncated for slot in envs]
        out.life_lost[:] = [slot.life_lost for slot in envs]
        out.first[:] = [slot.first for slot in envs]

    def state_dicts(self) -> list[StateDict]:
        """Return one state an environment."""
        return [slot.state_dict() for slot in self._envs]

    def load_state_dicts(self, states: Sequence[StateDict]) -> None:
        """Take over one state an environment; `ValueError` for one of another game."""
        most = self.info.num_actions - 1
        for state in states:
            if not 0 <= state["executed_action"] <= most:
                raise ValueError(f"executed_action: found {state['executed_action']}, expected 0 to {most}")
        for slot, state in zip(self._envs, states, strict=True):
            slot.load_state_dict(state)


def _preprocessor(emulators: Sequence[Emulator], env: Env) -> Preprocessor:
    return Preprocessor(
        envs=len(emulators),
        screen_shape=emulators[0].screen_shape,
        size_pixels=env.screen_size_pixels,
        method=env.resize,
        greys=emulators[0].greys,
    )


class ShardType(Protocol):
    """What the registry of environments holds: builds a shard of environments `envs` out of `num_envs`."""

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
        """Return the shard; `UserError` for a game that is not there."""
        ...


def slot_streams(*, envs: range, num_envs: int, seed: int, stream: str) -> list[EpisodeStreams]:
    """Return the random streams of consecutive environments."""
    return [EpisodeStreams(seed=seed, stream=stream, slot=slot, num_envs=num_envs) for slot in envs]
