"""Types of the keyword arguments that assembly passes to the constructors of trainings."""

from __future__ import annotations

from typing import Any, TypedDict

import torch

from atari_dqn.actors.pool import ActorPool
from atari_dqn.actors.weights import FlatWeights
from atari_dqn.agent.actor import Actor
from atari_dqn.agent.diagnostics import Diagnostics
from atari_dqn.agent.learner import Learner
from atari_dqn.assembly.acceleration import Backend
from atari_dqn.clock import Clock
from atari_dqn.replay.groups import GroupedReplay
from atari_dqn.schedule import HorizonSchedule
from atari_dqn.train.actor_meter import ActorMeter
from atari_dqn.train.loop import Exploration
from atari_dqn.train.metrics_ring import MetricsRing
from atari_dqn.train.reporter import Reporter
from atari_dqn.train.stopwatch import Stopwatch
from atari_dqn.types import Environments


class SharedParts(TypedDict):
    """The parts that every training has; `Learning` describes them."""

    clock: Clock
    exploration: Exploration
    terminal_on_life_loss: bool
    total_steps: int
    update_period_steps: int
    updates_per_period: int
    lookahead_frames: int
    device: torch.device
    backend: Backend
    learner: Learner
    horizon: HorizonSchedule
    diagnostics: Diagnostics
    metrics: MetricsRing
    reporter: Reporter
    stopwatch: Stopwatch


class LocalParts(SharedParts):
    """The parts of a `Training` but its replay, whose type depends on the spec."""

    envs: Environments
    actor: Actor
    captured: bool


class ActorParts(SharedParts):
    """The parts of an `ActorTraining`, which describes them."""

    envs: ActorPool
    replay: GroupedReplay[Any]
    captured: bool
    weights: FlatWeights
    publish_period_updates: int
    max_lag_updates: int
    has_priorities: bool
    meter: ActorMeter
