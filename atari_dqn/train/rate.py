"""Measure the training speed of a spec on this machine by a short training with a small replay."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace

import torch

from atari_dqn.assembly.data_efficient_parts import longest_window
from atari_dqn.spec.constraints import given
from atari_dqn.spec.contradictions import window_rows
from atari_dqn.spec.schema import Spec
from atari_dqn.spec.schema_actors import Actors
from atari_dqn.spec.sequence_rules import sequence_rows
from atari_dqn.train.build import assemble
from atari_dqn.train.learning import Learning

_WARM_UP_UPDATES = 20
_MIN_PREFILL_STEPS = 500
_MIN_PREFILL_ROWS = 16
"""Time steps of each environment."""


@dataclass(frozen=True, kw_only=True)
class Rate:
    """The speed of a training, and its time by part."""

    seconds: float
    frames_per_second: float
    updates_per_second: float
    samples_per_second: float
    """Sampled transitions per second."""
    shares: dict[str, float]
    """Share of the time by part, named as in throughput_log without `_share`."""
    emulators_busy_share: float | None
    """Mean over emulator processes of the share of time spent emulating; None if nothing measures it."""


def measure_rate(spec: Spec, device: torch.device, *, seconds: float) -> Rate:
    """Measure the speed of training with a small replay, after its prefill and a warm-up.

    ε has its final value, as in nearly all of a run.
    """
    with closing(assemble(small(spec), device)) as training:
        warm_up(training)
        return timed(training, seconds)


def warm_up(training: Learning, *, updates: int = _WARM_UP_UPDATES) -> None:
    """Start a training, prefill the replay, and run some updates."""
    training.begin()
    for _ in _iterations(training):
        if training.clock.updates >= updates:
            break


def timed(training: Learning, seconds: float) -> Rate:
    """Continue training for `seconds` and up to the next update, and return the rate.

    After `warm_up` both ends of the measurement follow an update. Rare updates, and those that follow a whole
    rollout, then have their share of the time.
    """
    clock, envs = training.clock, training.envs
    frames, updates, busy_seconds = clock.env_frames, clock.updates, envs.busy_seconds
    training.stopwatch.lap()
    began, previous = time.perf_counter(), updates
    for _ in _iterations(training):
        if clock.updates > previous and time.perf_counter() - began >= seconds:
            break
        previous = clock.updates
    spent, parts = training.stopwatch.lap()
    learned = clock.updates - updates
    busy_share = (envs.busy_seconds - busy_seconds) / envs.num_processes / spent
    return Rate(
        seconds=spent,
        frames_per_second=(clock.env_frames - frames) / spent,
        updates_per_second=learned / spent,
        samples_per_second=learned * training.replay.sampler.batch_size / spent,
        shares={part: in_it / spent for part, in_it in parts.items()}
        | {"other": 1 - sum(parts.values()) / spent},
        emulators_busy_share=None if math.isnan(busy_share) else busy_share,
    )


def _iterations(training: Learning) -> Iterator[None]:
    """Train iteration by iteration, with the reports of `dqn train`, which are part of training."""
    for iteration in training.iterations():
        deque(training.rows(iteration), maxlen=0)
        yield


def small(spec: Spec) -> Spec:
    """Return the spec with a small replay and prefill, the final ε throughout, and an unlimited budget."""
    end = spec.exploration.epsilon_end
    training = replace(spec.training, total_frames=2**62)
    exploration = replace(spec.exploration, epsilon_start=end)
    if spec.replay.kind == "rollouts":  # which are small, and all of which are needed
        return replace(spec, exploration=exploration, training=training)
    rows = max(_MIN_PREFILL_ROWS, _rows_to_sample(spec))
    prefill = max(_MIN_PREFILL_STEPS, spec.learner.batch_size, spec.env.num_envs * rows)
    return replace(
        spec,
        replay=replace(spec.replay, capacity_steps=4 * prefill, prefill_steps=prefill),
        exploration=exploration,
        training=training,
        actors=_without_lead(spec),
    )


def _without_lead(spec: Spec) -> Actors:
    """Return the keys of actors with the smallest buffer: what they play ahead would have no updates."""
    actors = spec.actors
    if actors.error_buffer_steps is None:
        return actors
    of_a_message = given(actors.fragment_steps) * (spec.env.num_envs // given(actors.processes))
    least = max(of_a_message, spec.learner.update_period_steps)
    return replace(actors, error_buffer_steps=min(actors.error_buffer_steps, least))


def _rows_to_sample(spec: Spec) -> int:
    """Compute the fewest time steps of an environment from which a minibatch can be sampled."""
    if spec.replay.kind == "sequences":
        return sequence_rows(given(spec.replay.burn_in_steps) + given(spec.replay.sequence_steps))
    return window_rows(spec.env.stack_frames, longest_window(spec))
