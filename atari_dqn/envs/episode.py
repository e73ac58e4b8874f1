"""What rules an episode, and where its chance comes from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from atari_dqn.rng import numpy_stream, stream_seed
from atari_dqn.spec.schema import Env


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeRules:
    """How actions become frames, and when an episode is cut. Keys of `spec.schema.Env` by their own names."""

    frame_skip: int
    sticky_probability: float
    noop_max_frames: int
    max_episode_frames: int
    life_loss_ends_skip: bool

    @classmethod
    def of(cls, env: Env) -> EpisodeRules:
        """Return the rules among the keys of a spec's section."""
        return cls(
            frame_skip=env.frame_skip,
            sticky_probability=env.sticky_probability,
            noop_max_frames=env.noop_max_frames,
            max_episode_frames=env.max_episode_frames,
            life_loss_ends_skip=env.life_loss_ends_skip,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeStreams:
    """The random streams of one environment's episodes.

    Episode k of environment e of E has the number e + kE over all environments, and streams of its own: what
    it draws depends neither on the draws of others nor on how environments are spread over processes. With
    `episodes` that number is a place in them.
    """

    seed: int
    stream: str
    slot: int
    num_envs: int
    episodes: tuple[int, ...] = ()
    """Numbers of the episodes to play, in place of 0, 1, 2, …; empty for all of them."""

    def generator(self, episode: int, purpose: str) -> np.random.Generator:
        """Return a fresh generator for one purpose within the environment's episode of that index."""
        return numpy_stream(self.seed, self.stream, "episode", self._number(episode), purpose)

    def game_seed(self, episode: int) -> int:
        """Return the seed, under 2**63, for a game that has chance of its own."""
        return stream_seed(self.seed, self.stream, "episode", self._number(episode), "game") % 2**63

    def _number(self, episode: int) -> int:
        place = self.slot + episode * self.num_envs
        return self.episodes[place] if place < len(self.episodes) else place
