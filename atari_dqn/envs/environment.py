"""One environment: an emulator played in steps and episodes.

    emulator frames   r | n n n | a a a a | b b b b | c c †
    rows                      S |     max |     max |     S    (max: of the last two frames of the row's step)

r is the reset, n are no-ops, † the game's end; S is one screen: the one that an episode begins with, or at
which a game ends within a skip. That end is not known a frame ahead, and no value is ever estimated from it.

A life that is lost, ♥, on the second frame of a step, by `life_loss_ends_skip`:

    false    a ♥ a a | b b b b        true    a ♥ | b b b b
                 max |     max                  S |     max
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from atari_dqn.envs.emulator import NOOP, Emulator
from atari_dqn.envs.episode import EpisodeRules, EpisodeStreams
from atari_dqn.envs.filming import Camera, FilmedEmulator
from atari_dqn.envs.preprocess import Screens
from atari_dqn.rng import generator_state, set_generator_state
from atari_dqn.types import StateDict


class Environment:
    """Plays one emulator; after `step` or `reset` its public attributes describe the new row.

    Its frame is that of the `screens` it was given to write.
    An episode's frames are counted from the emulator's reset, no-op frames included, as the Arcade
    Learning Environment counts them. A step stops in the middle of its skip at the game's end, exactly at
    the cap and, if the rules say so, at a lost life.
    """

    def __init__(self, emulator: Emulator, rules: EpisodeRules, streams: EpisodeStreams) -> None:
        self._emulator, self._rules, self._streams = emulator, rules, streams
        self._episode = -1
        self._episode_frames = 0
        self._lives = 0
        self._executed = NOOP
        self._sticky = streams.generator(0, "sticky")
        self._reset_due = True
        self.reward = 0.0
        self.terminated = self.truncated = self.life_lost = self.first = False

    def film(self, camera: Camera) -> None:
        """Show `camera` the emulator after each of its frames from now on, no-op frames included."""
        self._emulator = FilmedEmulator(self._emulator, camera)

    def play_episodes(self, episodes: Sequence[int]) -> None:
        """Play the episodes of these numbers, shared out over the environments, from the next reset on."""
        self._streams = replace(self._streams, episodes=tuple(episodes))

    def reset(self, screens: Screens) -> None:
        """Begin the next episode and write its first screen into both of `screens`."""
        self._episode += 1
        self._sticky = self._streams.generator(self._episode, "sticky")
        self._episode_frames = self._start()
        self._executed = NOOP
        self._lives = self._emulator.lives()
        self._reset_due = False
        self._emulator.colours(screens[0])
        np.copyto(screens[1], screens[0])
        self.reward = 0.0
        self.terminated = self.truncated = self.life_lost = False
        self.first = True

    def step(self, action: int, screens: Screens) -> None:
        """Hold `action` for a step and write its screens; after an ending, begin the next episode instead."""
        if self._reset_due:
            self.reset(screens)
            return
        self.first = False
        self._play(action, screens)
        lives = self._emulator.lives()
        self.life_lost = lives < self._lives
        self._lives = lives
        self.truncated = not self.terminated and self._episode_frames >= self._rules.max_episode_frames
        self._reset_due = self.terminated or self.truncated

    def _play(self, action: int, screens: Screens) -> None:
        emulator, rules = self._emulator, self._rules
        sticky_probability = rules.sticky_probability
        reward, over, ends, frame, seen = 0.0, False, False, 0, 0
        frames = min(rules.frame_skip, rules.max_episode_frames - self._episode_frames)
        while frame < frames and not ends:
            # the same draw as the emulator's own: the action held before stays with this probability
            if not sticky_probability or self._sticky.random() >= sticky_probability:
                self._executed = action
            reward += emulator.act(self._executed)
            over = emulator.game_over()
            ends = over or (rules.life_loss_ends_skip and emulator.lives() < self._lives)
            frame += 1
            if ends or frame >= frames - 1:
                emulator.colours(screens[seen])
                seen += 1
        self._episode_frames += frame
        self.reward, self.terminated = reward, over
        if seen == 1:
            np.copyto(screens[1], screens[0])

    def _start(self) -> int:
        """Reset the emulator, play the no-op frames and return how many they were."""
        game_seed = self._streams.game_seed(self._episode)
        self._emulator.reset(game_seed)
        if not self._rules.noop_max_frames:
            return 0
        draws = self._streams.generator(self._episode, "noop")
        while True:
            noops = self._draw_noops(draws)
            if self._survives(noops):
                return noops
            self._emulator.reset(game_seed)

    def _draw_noops(self, draws: np.random.Generator) -> int:
        """Return a number of no-op frames that leaves the episode at least one of its own."""
        noops = int(draws.integers(1, self._rules.noop_max_frames, endpoint=True))
        return min(noops, self._rules.max_episode_frames - 1)

    def _survives(self, noops: int) -> bool:
        for _ in range(noops):
            self._emulator.act(NOOP)
            if self._emulator.game_over():
                return False
        return True

    def state_dict(self) -> StateDict:
        """Return all that the next rows depend on."""
        return {
            "emulator": self._emulator.state_dict(),
            "episode": self._episode,
            "episode_frames": self._episode_frames,
            "lives": self._lives,
            "executed_action": self._executed,
            "reset_due": self._reset_due,
            "sticky": generator_state(self._sticky),
        }

    def load_state_dict(self, state: StateDict) -> None:
        """Take over a state of the same game, whichever environment object it came from."""
        self._emulator.load_state_dict(state["emulator"])
        self._episode = state["episode"]
        self._episode_frames = state["episode_frames"]
        self._lives = state["lives"]
        self._executed = state["executed_action"]
        self._reset_due = state["reset_due"]
        set_generator_state(self._sticky, state["sticky"])
