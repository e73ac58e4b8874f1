"""Helpers of the replay tests: episodes written as strings of letters, and all transitions of a buffer."""

from dataclasses import dataclass

import numpy as np
import torch

from atari_dqn.minibatch import Minibatch
from atari_dqn.replay.buffer import ReplayBuffer, ring_rows
from atari_dqn.replay.prioritized import PrioritizedSampler
from atari_dqn.replay.ring import FrameRing
from atari_dqn.replay.sampler import Sampler
from atari_dqn.replay.uniform import UniformSampler
from atari_dqn.schedule import LinearSchedule
from atari_dqn.types import StepBatch

CPU = torch.device("cpu")
GAME_OVER, CAP, LIFE = "|", "/", "!"


class EveryTransition(UniformSampler):
    """Samples every transition exactly once, in the order of their steps."""

    def draw(self):
        return self.valid_indices(), torch.ones(self.count)


def drawn_at(sampler: Sampler, env_frames: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Sample the indices and weights of a minibatch, with β at `env_frames`."""
    sampler.prepare(env_frames)
    return sampler.draw()


def sample_at(buffer: ReplayBuffer, env_frames: int) -> Minibatch:
    """Sample a minibatch, with β at `env_frames`."""
    buffer.prepare(env_frames)
    return buffer.sample()


def prioritized(
    *, capacity=100, batch_size=32, seed=0, device=CPU, alpha=0.6, beta_start=0.4, priority_offset=1e-6,
    weights_per_minibatch=False,
) -> PrioritizedSampler:  # fmt: skip
    """Create a prioritized sampler whose β reaches 1 at frame 1,000."""
    return PrioritizedSampler(
        capacity=capacity,
        batch_size=batch_size,
        alpha=alpha,
        beta=LinearSchedule(start=beta_start, end=1.0, decay_frames=1_000),
        priority_offset=priority_offset,
        seed=seed,
        device=device,
        weights_per_minibatch=weights_per_minibatch,
    )


def make_buffer(
    *, envs=1, capacity=20, stack=4, n_step=1, gamma=0.5, max_abs_reward=float("inf"), frame_shape=(1, 1),
    sampler=EveryTransition, batch_size=32, seed=0,
) -> ReplayBuffer:  # fmt: skip
    rows = ring_rows(capacity_steps=capacity, envs=envs, stack=stack, n_step=n_step)
    return ReplayBuffer(
        FrameRing(rows=rows, num_envs=envs, frame_shape=frame_shape, stack=stack, device=CPU),
        sampler(capacity=rows * envs, batch_size=batch_size, seed=seed, device=CPU),
        n_step=n_step,
        gamma=gamma,
        max_abs_reward=max_abs_reward,
    )


def batch(frame: np.ndarray, **rows) -> StepBatch:
    """Create a step from frames of all environments; the other columns are 0 and False unless given."""
    columns = {
        name: np.asarray(rows.get(name, np.zeros(len(frame))), dtype=kind)
        for name, kind in (
            ("reward", np.float64), ("terminated", bool), ("truncated", bool), ("life_lost", bool),
            ("first", bool),
        )
    }  # fmt: skip
    return StepBatch(frame=frame.astype(np.uint8), **columns)


def letter(frame: int) -> str:
    return chr(frame + 64) if frame else "·"


def play_tape(buffer: ReplayBuffer, tape: str, rewards: dict[str, float] | None = None) -> ReplayBuffer:
    """Store the steps of one environment: a letter is a frame, and its number the action taken on it.

    After a letter, `|` means that the game ended at it, `/` that the episode was truncated, `!` that a life
    was lost. `rewards` gives the reward that comes with a letter; the default is 1.
    """
    rewards = rewards or {}
    marks = {name: tape[place + 1 : place + 2] for place, name in enumerate(tape) if name.isalpha()}
    first, action = True, np.array([0])
    for place, (name, mark) in enumerate(marks.items()):
        step = batch(
            np.full((1, 1, 1), ord(name) - 64),
            reward=[0.0 if first else rewards.get(name, 1.0)],
            terminated=[mark == GAME_OVER],
            truncated=[mark == CAP],
            life_lost=[mark in (GAME_OVER, LIFE)],
            first=[first],
        )
        if place == 0:
            buffer.begin(step)
        else:
            buffer.append(action, step.discount(terminal_on_life_loss=True), step)
            buffer.check()
        first, action = mark in (GAME_OVER, CAP), np.array([ord(name) - 64])
    return buffer


@dataclass(frozen=True)
class Transition:
    """One transition of a minibatch in letters."""

    s_tm1: str
    action: int
    r_t: float
    discount_t: float
    s_t: str


def transitions(buffer: ReplayBuffer) -> dict[str, Transition]:
    """Return every transition of one environment by the letter that it begins with."""
    found = sample_at(buffer, 0)
    stacks = [
        ["".join(letter(int(frame)) for frame in stack) for stack in side[:, :, 0, 0]]
        for side in (found.s_tm1, found.s_t)
    ]
    return {
        before[-1]: Transition(before, int(action), float(reward), float(discount), after)
        for before, action, reward, discount, after in zip(
            stacks[0], found.a_tm1, found.r_t, found.discount_t, stacks[1], strict=True
        )
    }
