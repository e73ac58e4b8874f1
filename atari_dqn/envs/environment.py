"""One environment: an emulator with episodes, frame skip, no-ops, sticky actions, flicker and truncation.

    emulator frames   r | n n n | a a a a | b b b b | c c †
    observations              S |     max |     max |     S    max: of the last two frames of the step

r is the reset, n are no-op frames, † is the end of the game. S is a single screen: the first one of an
episode, or the last one of a game that ends within a skip. In the second case the next-to-last frame is not
pooled, because the end is not known one frame ahead; no value is estimated for this observation.

If a life is lost, ♥, at the second frame of a step, `life_loss_ends_skip` decides:

    false    a ♥ a a | b b b b        true    a ♥ | b b b b
                 max |     max                  S |     max

With flicker, each frame that the agent gets, the first one of an episode too, is obscured with a fixed
probability: it is black. Frames are obscured before they are stacked, each once: a stack may hold both kinds,
and the replay stores what the agent got. Hausknecht & Stone (2015), section 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from atari_dqn.envs.emulator import NOOP, Emulator
from atari_dqn.envs.episode import EpisodeRules, EpisodeStreams
from atari_dqn.envs.frame_callback import EmulatorWithCallback, FrameCallback
from atari_dqn.envs.preprocess import Screens
from atari_dqn.rng import generator_state, set_generator_state
from atari_dqn.types import StateDict


class Environment:
    """An emulator played in agent steps. `step` and `reset` set its public attributes to the step's result.

    They write the screens to be pooled into `screens`. The length of an episode is counted from the
    emulator's reset and includes no-op frames, as in the Arcade Learning Environment. A step ends before its
    skip is complete at the end of the game, at the maximum length of an episode and, with
    `life_loss_ends_skip`, at a lost life.
    """

    def __init__(self, emulator: Emulator, rules: EpisodeRules, streams: EpisodeStreams) -> None:
        self._emulator, self._rules, self._streams = emulator, rules, streams
        self._episode = -1
        self._episode_frames = 0
        self._lives = 0
        self._executed = NOOP
        self._sticky = streams.generator(0, "sticky")
        self._flicker = streams.generator(0, "flicker")
        self._reset_due = True
        self.reward = 0.0
        self.terminated = self.truncated = self.life_lost = self.first = self.obscured = False

    def add_frame_callback(self, callback: FrameCallback) -> None:
        """Call `callback` with the emulator after each reset and each frame, no-op frames included."""
        self._emulator = EmulatorWithCallback(self._emulator, callback)

    def play_episodes(self, episodes: Sequence[int]) -> None:
        """From the next reset on, play only the episodes with these numbers, as in `EpisodeStreams`."""
        self._streams = replace(self._streams, episodes=tuple(episodes))

    def reset(self, screens: Screens) -> None:
        """Begin the next episode and write its first screen to both of `screens`."""
        self._episode += 1
        self._sticky = self._streams.generator(self._episode, "sticky")
        self._flicker = self._streams.generator(self._episode, "flicker")
        self._episode_frames = self._start()
        self._executed = NOOP
        self._lives = self._emulator.lives()
        self._reset_due = False
        self._emulator.write_screen(screens[0])
        np.copyto(screens[1], screens[0])
        self.reward = 0.0
        self.terminated = self.truncated = self.life_lost = False
        self.first = True
        self.obscured = self._flickers()

    def step(self, action: int, screens: Screens) -> None:
        """Repeat `action` for a step and write its screens; if the episode has ended, reset instead."""
        if self._reset_due:
            self.reset(screens)
            return
        self.first = False
        self._play(action, screens)
        lives = self._emulator.lives()
        self.life_lost = lives < self._lives
        self._lives = lives
        self.obscured = self._flickers()
        self.truncated = not self.terminated and self._episode_frames >= self._rules.max_episode_frames
        self._reset_due = self.terminated or self.truncated

    def _flickers(self) -> bool:
        """Draw whether an observation is obscured; without flicker, draw nothing."""
        probability = self._rules.flicker_probability
        return bool(probability) and self._flicker.random() < probability

    def _play(self, action: int, screens: Screens) -> None:
        emulator, rules = self._emulator, self._rules
        sticky_probability = rules.sticky_probability
        reward, over, ends, frame, num_screens = 0.0, False, False, 0, 0
        frames = min(rules.frame_skip, rules.max_episode_frames - self._episode_frames)
        while frame < frames and not ends:
            # as in ALE: with this probability the previously executed action is executed again
            if not sticky_probability or self._sticky.random() >= sticky_probability:
                self._executed = action
            reward += emulator.act(self._executed)
            over = emulator.game_over()
            ends = over or (rules.life_loss_ends_skip and emulator.lives() < self._lives)
            frame += 1
            if ends or frame >= frames - 1:
                emulator.write_screen(screens[num_screens])
                num_screens += 1
        self._episode_frames += frame
        self.reward, self.terminated = reward, over
        if num_screens == 1:
            np.copyto(screens[1], screens[0])

    def _start(self) -> int:
        """Reset the emulator, play the no-op frames and return their number."""
        game_seed = self._streams.game_seed(self._episode)
        self._emulator.reset(game_seed)
        if not self._rules.noop_max_frames:
            return 0
        generator = self._streams.generator(self._episode, "noop")
        while True:
            noops = self._sample_noops(generator)
            if self._survives(noops):
                return noops
            self._emulator.reset(game_seed)

    def _sample_noops(self, generator: np.random.Generator) -> int:
        """Sample the number of no-op frames, which is below the maximum length of an episode."""
        noops = int(generator.integers(1, self._rules.noop_max_frames, endpoint=True))
        return min(noops, self._rules.max_episode_frames - 1)

    def _survives(self, noops: int) -> bool:
        for _ in range(noops):
            self._emulator.act(NOOP)
            if self._emulator.game_over():
                return False
        return True

    def state_dict(self) -> StateDict:
        """Return the state that all later steps depend on."""
        # without flicker there is no stream, so that states are those of versions that did not have it
        flicker = {"flicker": generator_state(self._flicker)} if self._rules.flicker_probability else {}
        return {
            "emulator": self._emulator.state_dict(),
            "episode": self._episode,
            "episode_frames": self._episode_frames,
            "lives": self._lives,
            "executed_action": self._executed,
            "reset_due": self._reset_due,
            "sticky": generator_state(self._sticky),
            **flicker,
        }

    def load_state_dict(self, state: StateDict) -> None:
        """Restore a state of any environment of the same game."""
        self._emulator.load_state_dict(state["emulator"])
        self._episode = state["episode"]
        self._episode_frames = state["episode_frames"]
        self._lives = state["lives"]
        self._executed = state["executed_action"]
        self._reset_due = state["reset_due"]
        set_generator_state(self._sticky, state["sticky"])
        if self._rules.flicker_probability:
            set_generator_state(self._flicker, state["flicker"])
