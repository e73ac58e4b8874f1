"""The rules of an environment's episodes, and their random streams."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from atari_dqn.rng import numpy_stream, stream_seed
from atari_dqn.spec.schema import Env


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeRules:
    """The keys of `spec.schema.Env` that determine how actions become frames and when episodes end."""

    frame_skip: int
    sticky_probability: float
    flicker_probability: float
    noop_max_frames: int
    max_episode_frames: int
    life_loss_ends_skip: bool

    @classmethod
    def from_env(cls, env: Env) -> EpisodeRules:
        """Select the rules from the keys of a spec's section `env`."""
        return cls(
            frame_skip=env.frame_skip,
            sticky_probability=env.sticky_probability,
            flicker_probability=env.flicker_probability,
            noop_max_frames=env.noop_max_frames,
            max_episode_frames=env.max_episode_frames,
            life_loss_ends_skip=env.life_loss_ends_skip,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeStreams:
    """The random streams of the episodes of one environment.

    Episode k of environment e has the number e + kE among the episodes of all E environments, and random
    streams of its own. An episode is therefore independent of the other episodes' random numbers and of the
    distribution of environments over processes. If `episodes` is given, e + kE is an index into it.
    """

    seed: int
    stream: str
    slot: int
    """Index e of the environment."""
    num_envs: int
    """Number of environments, E."""
    episodes: tuple[int, ...] = ()
    """Numbers of the episodes to play instead of 0, 1, 2, …; empty to play all."""

    def generator(self, episode: int, purpose: str) -> np.random.Generator:
        """Create the generator for one purpose in the environment's episode of index `episode`."""
        return numpy_stream(self.seed, self.stream, "episode", self._number(episode), purpose)

    def game_seed(self, episode: int) -> int:
        """Compute the seed, below 2**63, of a game with randomness of its own."""
        return stream_seed(self.seed, self.stream, "episode", self._number(episode), "game") % 2**63

    def _number(self, episode: int) -> int:
        index = self.slot + episode * self.num_envs
        return self.episodes[index] if index < len(self.episodes) else index
