"""Helpers of the environment tests: specs, a scripted game, and ways to play environments."""

from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from atari_dqn.envs.environment import Environment
from atari_dqn.envs.episode import EpisodeRules, EpisodeStreams
from atari_dqn.envs.greys import SAME_GREYS
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
    """Frame n lights pixel n and is worth 10**n (n mod 16); the reset screen is frame 0."""

    last_frame: int = 1_000
    lives_by_frame: tuple[int, ...] = ()
    screen_shape: tuple[int, int] = (1, 64)
    greys: np.ndarray = field(default_factory=lambda: SAME_GREYS)
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

    def colours(self, screen: np.ndarray) -> None:
        screen.fill(0)
        screen[0, self.frame % screen.shape[1]] = 200

    def state_dict(self) -> StateDict:
        return {"frame": self.frame}

    def load_state_dict(self, state: StateDict) -> None:
        self.frame = state["frame"]


class ScriptedEnvironment:
    """An environment of a scripted game, with screens to write."""

    def __init__(self, game: ScriptedGame, streams: EpisodeStreams = STREAMS, **rules) -> None:
        self._slot = Environment(game, replace(EpisodeRules.of(PLAIN), **rules), streams)
        self.screens = (np.zeros(game.screen_shape, np.uint8), np.zeros(game.screen_shape, np.uint8))

    def reset(self) -> None:
        self._slot.reset(self.screens)

    def step(self, action: int) -> None:
        self._slot.step(action, self.screens)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._slot, name)


def frames_shown(slot: ScriptedEnvironment) -> list[int]:
    """Return the numbers of the frames that a scripted environment's screens show."""
    return np.flatnonzero(np.maximum(*slot.screens)).tolist()


def copied(batch: StepBatch) -> StepBatch:
    return StepBatch(**{each.name: getattr(batch, each.name).copy() for each in fields(batch)})


def play(envs: Environments, actions: Iterable[np.ndarray]) -> list[StepBatch]:
    rows = []
    for action in actions:
        envs.send(action)
        rows.append(copied(envs.recv()))
    return rows


def random_actions(envs: Environments, steps: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, envs.info.num_actions, (steps, envs.num_envs))


def as_bytes(rows: Iterable[StepBatch]) -> bytes:
    return b"".join(getattr(row, each.name).tobytes() for row in rows for each in fields(row))
