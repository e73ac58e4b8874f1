"""Make the replay from a spec: its ring, its sampler, and a group of columns for each actor."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch

from atari_dqn.assembly.acceleration import Backend, make_backend
from atari_dqn.assembly.data_efficient_parts import longest_horizon, longest_window, predicted_steps
from atari_dqn.assembly.sequence_parts import has_sequences, sequence_replay, sequence_rows, state_table
from atari_dqn.machine.devices import replay_device
from atari_dqn.machine.learner_items import bytes_on_gpu
from atari_dqn.replay.buffer import ReplayBuffer, ring_rows
from atari_dqn.replay.futures import FutureReplay
from atari_dqn.replay.groups import GroupedReplay
from atari_dqn.replay.prioritized import PrioritizedSampler
from atari_dqn.replay.replay import Replay
from atari_dqn.replay.ring import FrameRing
from atari_dqn.replay.rollouts import Rollouts
from atari_dqn.replay.sampler import Sampler
from atari_dqn.replay.states import StateTable
from atari_dqn.replay.uniform import UniformSampler
from atari_dqn.replay.uniform_groups import GroupedUniformSampler
from atari_dqn.rng import torch_seed
from atari_dqn.schedule import LinearSchedule
from atari_dqn.spec.constraints import given
from atari_dqn.spec.schema import Spec
from atari_dqn.types import GameInfo


def build_replay(
    spec: Spec, info: GameInfo, device: torch.device, backend: Backend | None = None
) -> Replay[Any]:
    """Make the replay of one process, on the device that `replay.device` selects."""
    backend = backend or make_backend(device)
    ring = _ring(spec, info, device, backend)
    sampler = _prioritized(spec, ring, backend) if spec.toggles.prioritized else _uniform(spec, ring)
    return _on_ring(spec, ring, sampler, state_table(spec, ring))


def build_grouped_replay(
    spec: Spec, info: GameInfo, device: torch.device, backend: Backend
) -> GroupedReplay[Any]:
    """Make a replay in which each actor has a newest row of its own."""
    ring, processes = _ring(spec, info, device, backend), given(spec.actors.processes)
    sampler = _prioritized(spec, ring, backend) if spec.toggles.prioritized else _uniform_groups(spec, ring)
    states = state_table(spec, ring)
    each = spec.env.num_envs // processes
    groups = []
    for envs in (range(first, first + each) for first in range(0, spec.env.num_envs, each)):
        own = None if states is None else states.group(envs)
        groups.append(_on_ring(spec, ring.group(envs), sampler, own))
    return GroupedReplay(ring, sampler, groups, states=states)


def _ring(spec: Spec, info: GameInfo, device: torch.device, backend: Backend) -> FrameRing:
    capacity, envs, stack = spec.replay.capacity_steps, spec.env.num_envs, spec.env.stack_frames
    needed = bytes_on_gpu(spec, info.num_actions)
    rows = (
        sequence_rows(spec)
        if has_sequences(spec)
        else ring_rows(capacity_steps=capacity, envs=envs, stack=stack, n_step=longest_window(spec))
    )
    return backend.ring(
        rows=rows,
        num_envs=envs,
        frame_shape=info.frame_shape,
        stack=stack,
        device=replay_device(spec.replay.device, learner=device, needed_bytes=needed),
    )


def _on_ring(spec: Spec, ring: FrameRing, sampler: Sampler, states: StateTable | None) -> Replay[Any]:
    """Make a replay of transitions or of sequences on a ring."""
    if has_sequences(spec):
        return sequence_replay(spec, ring, sampler, states)
    if spec.replay.kind == "rollouts":
        steps = spec.replay.capacity_steps // spec.env.num_envs
        return Rollouts(ring, sampler, steps=steps, max_abs_reward=spec.learner.max_abs_reward)
    predicted = predicted_steps(spec)
    make = partial(FutureReplay, steps=predicted) if predicted else ReplayBuffer
    return make(
        ring,
        sampler,
        n_step=longest_horizon(spec),
        gamma=spec.learner.discount,
        max_abs_reward=spec.learner.max_abs_reward,
    )


def _sampling_seed(spec: Spec) -> int:
    return torch_seed(spec.seed, "replay")


def _prioritized(spec: Spec, ring: FrameRing, backend: Backend) -> Sampler:
    return PrioritizedSampler(
        capacity=ring.zero_index,
        batch_size=spec.learner.batch_size,
        alpha=given(spec.replay.alpha),
        beta=LinearSchedule(
            start=given(spec.replay.beta_start),
            end=given(spec.replay.beta_end),
            decay_frames=spec.training.total_frames,
        ),
        priority_offset=given(spec.replay.priority_offset),
        seed=_sampling_seed(spec),
        device=ring.device,
        make_tree=backend.priority_tree,
        weights_per_minibatch=spec.replay.weight_maximum == "minibatch",
    )


def _uniform(spec: Spec, ring: FrameRing) -> Sampler:
    return UniformSampler(
        capacity=ring.zero_index,
        batch_size=spec.learner.batch_size,
        seed=_sampling_seed(spec),
        device=ring.device,
    )


def _uniform_groups(spec: Spec, ring: FrameRing) -> Sampler:
    return GroupedUniformSampler(
        capacity=ring.zero_index,
        groups=given(spec.actors.processes),
        num_envs=spec.env.num_envs,
        batch_size=spec.learner.batch_size,
        seed=_sampling_seed(spec),
        device=ring.device,
    )
