"""Parts from a spec: the places where a toggle chooses a part, once."""

from __future__ import annotations

from dataclasses import asdict

import torch

from atari_dqn.agents.learner import Learner, double_dqn_target, dqn_target
from atari_dqn.agents.networks import DuelingHead, LinearHead, QNetwork, initialize
from atari_dqn.agents.registry import NETWORKS, OPTIMIZERS
from atari_dqn.devices import replay_device
from atari_dqn.replay.buffer import ReplayBuffer, ring_rows
from atari_dqn.replay.prioritized import PrioritizedSampler
from atari_dqn.replay.ring import FrameRing
from atari_dqn.replay.sampler import Sampler
from atari_dqn.replay.uniform import UniformSampler
from atari_dqn.rng import torch_seed
from atari_dqn.schedule import LinearSchedule
from atari_dqn.sizes import replay_bytes
from atari_dqn.spec.schema import Optimizer, Spec
from atari_dqn.types import GameInfo


def build_network(spec: Spec, info: GameInfo, device: torch.device) -> QNetwork:
    """Make a network of the spec's kind, its weights drawn from the run's own stream."""
    head_type = DuelingHead if spec.toggles.dueling else LinearHead
    torso = NETWORKS.load(spec.network.kind)(
        stack=spec.env.stack_frames, frame_shape=info.frame_shape, streams=head_type.streams
    )
    head = head_type(torso.num_features, info.num_actions)
    network = QNetwork(torso, head, precision=spec.learner.precision)
    # Drawn on the CPU, so that a run begins with the same weights on every device.
    generator = torch.Generator().manual_seed(torch_seed(spec.seed, "network"))
    initialize(network, init=spec.network.init, generator=generator)
    return network.to(device)


def build_optimizer(network: QNetwork, optimizer: Optimizer) -> torch.optim.Optimizer:
    """Make the chosen optimizer of the values its kind uses."""
    values = {key: value for key, value in asdict(optimizer).items() if key != "kind" and value is not None}
    return OPTIMIZERS.load(optimizer.kind)(network.parameters(), **values)


def build_learner(spec: Spec, info: GameInfo, device: torch.device) -> Learner:
    """Make online and target network, optimizer and rules."""
    online = build_network(spec, info, device)
    return Learner(
        online=online,
        target=build_network(spec, info, device),
        optimizer=build_optimizer(online, spec.optimizer),
        target_rule=double_dqn_target if spec.toggles.double else dqn_target,
        loss=spec.learner.loss,
        reduction=spec.learner.reduction,
        accumulate=spec.learner.accumulate,
        max_grad_norm=spec.learner.max_grad_norm,
        target_period_updates=spec.learner.target_period_updates,
    )


def _build_sampler(spec: Spec, *, capacity: int, device: torch.device) -> Sampler:
    """Make the sampler that `toggles.prioritized` chooses."""
    seed, batch_size = torch_seed(spec.seed, "replay"), spec.learner.batch_size
    if not spec.toggles.prioritized:
        return UniformSampler(capacity=capacity, batch_size=batch_size, seed=seed, device=device)
    assert spec.replay.alpha is not None
    assert spec.replay.beta_start is not None
    assert spec.replay.priority_offset is not None
    return PrioritizedSampler(
        capacity=capacity,
        batch_size=batch_size,
        alpha=spec.replay.alpha,
        beta=LinearSchedule(start=spec.replay.beta_start, end=1.0, decay_frames=spec.training.total_frames),
        priority_offset=spec.replay.priority_offset,
        seed=seed,
        device=device,
    )


def build_replay(spec: Spec, info: GameInfo, device: torch.device) -> ReplayBuffer:
    """Make the replay where the spec wants it."""
    lanes, stack, capacity = spec.env.lanes, spec.env.stack_frames, spec.replay.capacity_steps
    needed = replay_bytes(capacity_steps=capacity, screen_size_pixels=spec.env.screen_size_pixels)
    place = replay_device(spec.replay.device, learner=device, needed_bytes=needed)
    rows = ring_rows(capacity_steps=capacity, lanes=lanes, stack=stack, n_step=spec.toggles.n_step)
    sampler = _build_sampler(spec, capacity=rows * lanes, device=place)
    return ReplayBuffer(
        FrameRing(rows=rows, lanes=lanes, frame_shape=info.frame_shape, stack=stack, device=place),
        sampler,
        n_step=spec.toggles.n_step,
        gamma=spec.learner.discount,
        max_abs_reward=spec.learner.max_abs_reward,
    )
