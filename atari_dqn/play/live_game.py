"""One game that is shown while it is played: its screens, its score and its ending."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from jaxtyping import UInt8

from atari_dqn.clock import steps_to_frames
from atari_dqn.envs.buffers import new_batch
from atari_dqn.envs.emulator import Emulator
from atari_dqn.envs.games import make_game
from atari_dqn.evaluation.evaluate import STREAM, evaluation_env
from atari_dqn.run.scores import EvaluationEpisode
from atari_dqn.spec.schema import Spec
from atari_dqn.types import GameInfo, StepBatch

Screen = UInt8[np.ndarray, "H W 3"]


class Player(Protocol):
    """Selects the actions of one game."""

    def act(self, step: StepBatch, /) -> int:
        """Select the action that follows a step of one environment, whose arrays the next step reuses."""
        ...


class LiveGame:
    """A game of the infinite sequence that a spec and its seed give: episode i is that of `dqn eval`.

    `begin` and `step` return the screens of the frames that were emulated, at least one.
    """

    def __init__(self, spec: Spec, episode: int) -> None:
        self.spec, self.episode = spec, episode
        self._shard = make_game(
            game=spec.game, env=evaluation_env(spec), seed=spec.seed, stream=STREAM, episode=episode
        )
        self._filmed: list[Screen] = []
        self._shard.add_frame_callback(self._film)
        self._step = new_batch(1, self._shard.info.frame_shape)
        self.score = 0.0
        """The return so far."""
        self.lives = 0
        self.steps = 0
        """Agent steps so far."""
        self.action = 0
        """The latest action, an index into the names of `info`."""
        self.result: EvaluationEpisode | None = None
        """The result of the game; None until it has ended."""

    @property
    def info(self) -> GameInfo:
        """The game and its actions."""
        return self._shard.info

    def begin(self) -> Sequence[Screen]:
        """Start the game, and return the screen of its first frame that a player acts on."""
        self._shard.reset(self._step)
        return self._screens()[-1:]

    def step(self, player: Player) -> Sequence[Screen]:
        """Let a player act once."""
        self.action = player.act(self._step)
        self._shard.step(np.array([self.action]), self._step)
        self.score += float(self._step.reward[0])
        self.steps += 1
        if self._step.ended[0]:  # at the end of the step: Ctrl-C may interrupt it anywhere
            self.result = self._result()
        return self._screens()

    def _result(self) -> EvaluationEpisode:
        return EvaluationEpisode(
            episode_return=self.score,
            length_frames=steps_to_frames(self.steps, frame_skip=self.spec.env.frame_skip),
            end_reason="game_over" if self._step.terminated[0] else "frame_cap",
        )

    def _film(self, emulator: Emulator) -> None:
        self._filmed.append(emulator.rgb())
        self.lives = emulator.lives()

    def _screens(self) -> list[Screen]:
        screens, self._filmed = self._filmed, []
        return screens
