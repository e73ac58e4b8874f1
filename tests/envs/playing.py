"""Helpers of the environment tests: specs, a scripted game, and functions that play environments."""

from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from atari_dqn.envs.environment import Environment
from atari_dqn.envs.episode import EpisodeRules, EpisodeStreams
from atari_dqn.envs.palette import IDENTITY_PALETTE
from atari_dqn.spec.schema import Env
from atari_dqn.types import Environments, StateDict, StepBatch

PLAIN = Env(
    kind="atari",
    num_envs=1,
    frame_skip=4,
    screen_size_pixels=84,
    resize="area",
    stack_frames=4,
    sticky_probability=0.0,
    flicker_probability=0.0,
    noop_max_frames=0,
    max_episode_frames=108_000,
    terminal_on_life_loss=False,
    life_loss_ends_skip=False,
    full_action_set=False,
)
CATCH = replace(PLAIN, kind="catch")
STREAMS = EpisodeStreams(seed=1, stream="train", slot=0, num_envs=1)


@dataclass
class ScriptedGame:
    """A game whose frame n lights pixel n and has reward 10**(n mod 16); a reset shows frame 0."""

    last_frame: int = 1_000
    lives_by_frame: tuple[int, ...] = ()
    screen_shape: tuple[int, int] = (1, 64)
    palette: np.ndarray = field(default_factory=lambda: IDENTITY_PALETTE)
    frame: int = 0
    resets: int = 0

    def __post_init__(self) -> None:
        self.played: list[int] = []

    def reset(self, episode_seed: int) -> None:
        self.frame = 0
        self.resets += 1

    def act(self, action: int) -> float:
        assert not self.game_over()
        self.frame += 1
        self.played.append(action)
        return 10.0 ** (self.frame % 16)

    def game_over(self) -> bool:
        return self.frame >= self.last_frame

    def lives(self) -> int:
        return (
            self.lives_by_frame[min(self.frame, len(self.lives_by_frame) - 1)] if self.lives_by_frame else 0
        )

    def write_screen(self, screen: np.ndarray) -> None:
        screen.fill(0)
        screen[0, self.frame % screen.shape[1]] = 200

    def state_dict(self) -> StateDict:
        return {"frame": self.frame}

    def load_state_dict(self, state: StateDict) -> None:
        self.frame = state["frame"]


class ScriptedEnvironment:
    """An environment of a scripted game, with the arrays for its screens."""

    def __init__(self, game: ScriptedGame, streams: EpisodeStreams = STREAMS, **rules) -> None:
        self._env = Environment(game, replace(EpisodeRules.from_env(PLAIN), **rules), streams)
        self.screens = (np.zeros(game.screen_shape, np.uint8), np.zeros(game.screen_shape, np.uint8))

    def reset(self) -> None:
        self._env.reset(self.screens)

    def step(self, action: int) -> None:
        self._env.step(action, self.screens)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._env, name)


def frames_shown(env: ScriptedEnvironment) -> list[int]:
    """Return the numbers of the frames in the screens of a scripted environment."""
    return np.flatnonzero(np.maximum(*env.screens)).tolist()


def copied(batch: StepBatch) -> StepBatch:
    return StepBatch(**{each.name: getattr(batch, each.name).copy() for each in fields(batch)})


def play(envs: Environments, actions: Iterable[np.ndarray]) -> list[StepBatch]:
    steps = []
    for action in actions:
        envs.send(action)
        steps.append(copied(envs.recv()))
    return steps


def random_actions(envs: Environments, steps: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, envs.info.num_actions, (steps, envs.num_envs))


def as_bytes(steps: Iterable[StepBatch]) -> bytes:
    return b"".join(getattr(step, each.name).tobytes() for step in steps for each in fields(step))
