"""Lanes that share a process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from jaxtyping import Int64

from atari_dqn.envs.emulator import Emulator
from atari_dqn.envs.episode import EpisodeRules, EpisodeStreams
from atari_dqn.envs.filming import Camera
from atari_dqn.envs.lane import Lane
from atari_dqn.envs.preprocess import Preprocessor
from atari_dqn.spec.schema import Env
from atari_dqn.types import GameInfo, StateDict, StepBatch

_LANES_TOGETHER = 8
"""Preprocessed in one go: enough to spread a call's cost, few enough that their screens stay in the cache."""


class Shard:
    """Steps its lanes in turn and writes their rows into given arrays."""

    def __init__(
        self, emulators: Sequence[Emulator], streams: Sequence[EpisodeStreams], env: Env, info: GameInfo
    ) -> None:
        rules = EpisodeRules.of(env)
        self.emulators = tuple(emulators)
        self._lanes = [
            Lane(emulator, rules, of_lane) for emulator, of_lane in zip(emulators, streams, strict=True)
        ]
        places = [
            slice(begin, begin + _LANES_TOGETHER) for begin in range(0, len(emulators), _LANES_TOGETHER)
        ]
        self._groups = [(rows, _preprocessor(emulators[rows], env)) for rows in places]
        self.info = info

    def film(self, camera: Camera) -> None:
        """Show `camera` each lane's emulator after each of its frames from now on."""
        for lane in self._lanes:
            lane.film(camera)

    def play_episodes(self, episodes: Sequence[int]) -> None:
        """Play the episodes of these numbers, shared out over all lanes, from the next reset on."""
        for lane in self._lanes:
            lane.play_episodes(episodes)

    def reset(self, out: StepBatch) -> None:
        """Begin a new episode on every lane and write its first row."""
        for rows, preprocessor in self._groups:
            for lane, screens in zip(self._lanes[rows], preprocessor.screens, strict=True):
                lane.reset(screens)
            out.frame[rows] = preprocessor.process()
        self._write_facts(out)

    def step(self, actions: Int64[np.ndarray, "E"], out: StepBatch) -> None:
        """Step every lane and write its row."""
        for rows, preprocessor in self._groups:
            lanes = zip(self._lanes[rows], preprocessor.screens, actions[rows].tolist(), strict=True)
            for lane, screens, action in lanes:
                lane.step(action, screens)
            out.frame[rows] = preprocessor.process()
        self._write_facts(out)

    def _write_facts(self, out: StepBatch) -> None:
        lanes = self._lanes
        out.reward[:] = [lane.reward for lane in lanes]
        out.terminated[:] = [lane.terminated for lane in lanes]
        out.truncated[:] = [lane.truncated for lane in lanes]
        out.life_lost[:] = [lane.life_lost for lane in lanes]
        out.first[:] = [lane.first for lane in lanes]

    def state_dicts(self) -> list[StateDict]:
        """Return one state a lane."""
        return [lane.state_dict() for lane in self._lanes]

    def load_state_dicts(self, states: Sequence[StateDict]) -> None:
        """Take over one state a lane; `ValueError` for one of another game."""
        most = self.info.num_actions - 1
        for state in states:
            if not 0 <= state["executed_action"] <= most:
                raise ValueError(f"executed_action: found {state['executed_action']}, expected 0 to {most}")
        for lane, state in zip(self._lanes, states, strict=True):
            lane.load_state_dict(state)


def _preprocessor(emulators: Sequence[Emulator], env: Env) -> Preprocessor:
    return Preprocessor(
        lanes=len(emulators),
        screen_shape=emulators[0].screen_shape,
        size_pixels=env.screen_size_pixels,
        method=env.resize,
        greys=emulators[0].greys,
    )


class ShardType(Protocol):
    """What the registry of environments holds: builds a shard of lanes `lanes` out of `num_lanes`."""

    def __call__(
        self,
        *,
        game: str,
        env: Env,
        lanes: range,
        num_lanes: int,
        seed: int,
        stream: str,
        power_on_reset: bool,
    ) -> Shard:
        """Return the shard; `UserError` for a game that is not there."""
        ...


def lane_streams(*, lanes: range, num_lanes: int, seed: int, stream: str) -> list[EpisodeStreams]:
    """Return the random streams of consecutive lanes."""
    return [EpisodeStreams(seed=seed, stream=stream, lane=lane, num_lanes=num_lanes) for lane in lanes]
