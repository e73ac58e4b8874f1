"""How fast a spec trains on this machine, measured by training a small one for a moment."""

from __future__ import annotations

import time
from collections import deque
from contextlib import closing
from dataclasses import replace

import torch

from atari_dqn.spec.schema import Spec
from atari_dqn.train.assembly import assemble
from atari_dqn.train.loop import q_learning

_WARM_UP_UPDATES = 20
_REPLAY_STEPS = 2_000


def measure_frames_per_second(spec: Spec, device: torch.device, *, seconds: float = 2.0) -> float:
    """Return the emulator frames/s that learning makes, measured for `seconds` on a small replay.

    Learning as it is once ε has fallen: that is nearly all of a run.
    """
    with closing(assemble(_small(spec), device)) as training:
        training.begin()
        began, frames = 0.0, 0
        for tick in q_learning(training):
            clock = training.clock
            deque(training.reporter.rows(tick, replay_transitions=training.replay.num_transitions), maxlen=0)
            if not began and clock.updates >= _WARM_UP_UPDATES:
                began, frames = time.perf_counter(), clock.env_frames
            elif began and time.perf_counter() - began >= seconds:
                break
        return (training.clock.env_frames - frames) / (time.perf_counter() - began)


def _small(spec: Spec) -> Spec:
    """Return the spec with a small replay, soon filled, and ε as it is at the end."""
    end = spec.exploration.epsilon_end
    steps = max(_REPLAY_STEPS, 4 * spec.learner.batch_size, 64 * spec.env.lanes)
    return replace(
        spec,
        replay=replace(spec.replay, capacity_steps=steps, prefill_steps=steps // 4),
        exploration=replace(spec.exploration, epsilon_start=end),
        training=replace(spec.training, total_frames=2**62),
    )
