"""Build a training and its failure gates from a complete spec."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Any, TypeVar, Unpack

import torch

from atari_dqn.actors.build import sends_priorities
from atari_dqn.actors.limiter import Limiter
from atari_dqn.actors.local import LocalCarrier
from atari_dqn.actors.pool import ActorPool
from atari_dqn.actors.supervised import actors_of
from atari_dqn.actors.weights import FlatWeights
from atari_dqn.agent.redo import ReDo
from atari_dqn.assembly.acceleration import Backend, can_capture, make_backend
from atari_dqn.assembly.data_efficient_parts import horizon_of, make_redo
from atari_dqn.assembly.largest_q import largest_q
from atari_dqn.assembly.parts import (
    acting_network,
    build_actor,
    build_diagnostics,
    build_learner,
    initial_network,
)
from atari_dqn.assembly.replay_parts import build_grouped_replay, build_replay
from atari_dqn.clock import Clock, frames_to_steps, steps_to_frames
from atari_dqn.envs.games import game_info, make_envs
from atari_dqn.machine.allocator import keep_freed_memory
from atari_dqn.machine.devices import check_precision, make_current, set_kernels
from atari_dqn.replay.replay import Replay
from atari_dqn.replay.rollouts import Rollouts
from atari_dqn.spec.constraints import decided, given
from atari_dqn.spec.exploration import exploration_of
from atari_dqn.spec.schema import Spec
from atari_dqn.telemetry.gates.evaluation_gate import EvaluationsGate
from atari_dqn.telemetry.gates.gate_set import Gates
from atari_dqn.telemetry.gates.period_gates import ActionsGate, DeadUnitsGate, DiskGate, ThroughputGate
from atari_dqn.telemetry.gates.replay_gate import PrioritiesGate
from atari_dqn.telemetry.gates.update_gates import GradientsGate, GradNormGate, LossGate, QBoundGate
from atari_dqn.train.actor_meter import ActorMeter
from atari_dqn.train.actor_training import ActorTraining, LockstepTraining
from atari_dqn.train.free_running import FreeRunningTraining
from atari_dqn.train.learning import Learning
from atari_dqn.train.metrics_ring import MetricsRing
from atari_dqn.train.reporter import Reporter
from atari_dqn.train.rollout_training import RolloutTraining
from atari_dqn.train.stopwatch import Stopwatch
from atari_dqn.train.training import Training
from atari_dqn.train.training_parts import ActorParts, LocalParts, SharedParts
from atari_dqn.types import GameInfo

T = TypeVar("T", bound=Learning)

MakeActors = Callable[[Spec], ActorPool]
"""Makes the actors of a spec; it chooses what carries their messages."""


def local_actors(spec: Spec) -> ActorPool:
    """Return the actors of a spec in processes of this machine."""
    info = game_info(spec)
    return actors_of(spec, info, LocalCarrier(spec, info))


def assemble(spec: Spec, device: torch.device, make_actors: MakeActors = local_actors) -> Learning:
    """Build the training of a spec, for which the number of torch's threads is set in this process.

    The caller closes the training, which stops its worker processes.
    """
    if spec.actors.mode == "none":
        return assemble_without_actors(spec, device)
    return _assembled(partial(_with_actors, make_actors), spec, device)


def assemble_without_actors(spec: Spec, device: torch.device) -> Training:
    """Build a training whose environments step together, as `assemble` does for a spec without actors."""
    return _assembled(_local, spec, device)


def _assembled(build: Callable[[Spec, torch.device, ExitStack], T], spec: Spec, device: torch.device) -> T:
    check_precision(decided(spec.learner.precision), device)
    make_current(device)
    set_kernels(device, threads=decided(spec.learner.threads), deterministic=spec.learner.deterministic)
    keep_freed_memory()
    with ExitStack() as stack:
        training = build(spec, device, stack)
        if spec.toggles.redo:
            training.learner.upkeep.append(_redo(spec, training))
        stack.pop_all()
        return training


def _redo(spec: Spec, training: Learning) -> ReDo:
    """Build the recycling of dormant units, which samples from the replay."""
    return make_redo(
        spec,
        training.learner,
        states=partial(training.sample_states, count=given(spec.learner.redo_states)),
        fresh=partial(initial_network, spec, training.envs.info, "redo"),
        report=training.recycled.append,
    )


def _local(spec: Spec, device: torch.device, stack: ExitStack) -> Training:
    """Build a training whose environments step together, in this process or in workers."""
    envs = make_envs(
        game=spec.game,
        env=spec.env,
        num_envs=spec.env.num_envs,
        seed=spec.seed,
        stream="training",
        workers=decided(spec.system.workers),
    )
    stack.callback(envs.close)
    backend = make_backend(device, compiled=decided(spec.learner.compile))
    with backend.compiling():
        shared = _shared_parts(spec, device, envs.info, backend, steps_at_once=_steps_at_once(spec))
        replay = build_replay(spec, envs.info, device, backend)
        training = _local_training(
            spec,
            replay,
            **shared,
            envs=envs,
            actor=build_actor(spec, envs, acting_network(spec, shared["learner"]), device),
            captured=uses_graphs(spec, device, replay_on=replay.ring.device),
        )
        training.compile()
        return training


def _local_training(spec: Spec, replay: Replay[Any], **parts: Unpack[LocalParts]) -> Training:
    """Build a training that learns from a replay, or from rollouts."""
    if not isinstance(replay, Rollouts):
        return Training(**parts, replay=replay)
    return RolloutTraining(
        **parts,
        replay=replay,
        gamma=spec.learner.discount,
        trace_decay=given(spec.learner.trace_decay),
        updates_per_rollout=spec.replay.capacity_steps // spec.learner.update_period_steps,
    )


def _steps_at_once(spec: Spec) -> int:
    """Return the number of steps whose updates are made in one iteration."""
    return spec.replay.capacity_steps if spec.replay.kind == "rollouts" else spec.env.num_envs


def _with_actors(
    make_actors: MakeActors, spec: Spec, device: torch.device, stack: ExitStack
) -> ActorTraining:
    """Build a training whose actors step their environments themselves."""
    actors = make_actors(spec)
    stack.callback(actors.close)
    backend = make_backend(device)
    fragment_steps = given(spec.actors.fragment_steps) * spec.env.num_envs // given(spec.actors.processes)
    shared = _shared_parts(spec, device, actors.info, backend, steps_at_once=fragment_steps)
    parts: ActorParts = {
        **shared,
        "envs": actors,
        "replay": build_grouped_replay(spec, actors.info, device, backend),
        "captured": False,
        "weights": FlatWeights(shared["learner"].online),
        "publish_period_updates": given(spec.actors.publish_period_updates),
        "max_lag_updates": given(spec.actors.max_lag_updates),
        "has_priorities": sends_priorities(spec),
        "meter": ActorMeter(actors.num_actors, frame_skip=spec.env.frame_skip),
    }
    if spec.actors.mode == "lockstep":
        return LockstepTraining(**parts)
    return FreeRunningTraining(
        **parts, limiter=_limiter(spec), messages_in_flight=given(spec.actors.max_messages_in_flight)
    )


def _limiter(spec: Spec) -> Limiter:
    """Make the limiter of the ratio of samples to steps."""
    updates_per_step = spec.learner.updates_per_period / spec.learner.update_period_steps
    samples_per_insert = spec.learner.batch_size * updates_per_step
    return Limiter(
        samples_per_insert=samples_per_insert,
        min_size=spec.replay.prefill_steps,
        error_buffer=samples_per_insert * given(spec.actors.error_buffer_steps),
    )


def _shared_parts(
    spec: Spec, device: torch.device, info: GameInfo, backend: Backend, *, steps_at_once: int
) -> SharedParts:
    """Build the parts that every training has. `steps_at_once`: the steps of an iteration."""
    skip, period = spec.env.frame_skip, spec.learner.update_period_steps
    clock = Clock(frame_skip=skip, prefill_steps=spec.replay.prefill_steps)
    metrics = MetricsRing(
        batch_size=spec.learner.batch_size,
        device=device,
        updates_per_iteration=-(-steps_at_once // period) * spec.learner.updates_per_period,
    )
    return {
        "clock": clock,
        "exploration": exploration_of(spec),
        "terminal_on_life_loss": spec.env.terminal_on_life_loss,
        "total_steps": frames_to_steps(spec.training.total_frames, frame_skip=skip),
        "update_period_steps": period,
        "updates_per_period": spec.learner.updates_per_period,
        "lookahead_frames": steps_to_frames(period + steps_at_once - 1, frame_skip=skip),
        "device": device,
        "backend": backend,
        "learner": build_learner(spec, info, device, backend),
        "horizon": horizon_of(spec),
        "diagnostics": build_diagnostics(spec),
        "metrics": metrics,
        "reporter": Reporter(
            clock,
            envs=spec.env.num_envs,
            update_period_steps=spec.logging.update_period_steps,
            rolling_episodes=spec.logging.rolling_episodes,
            updates=metrics.reader(),
        ),
        "stopwatch": Stopwatch(),
    }


def uses_graphs(spec: Spec, device: torch.device, *, replay_on: torch.device) -> bool:
    """Return whether acting and updates are captured: if set in the spec and if the replay is on the GPU."""
    on_gpu = device.type == "cuda" and replay_on == device
    return spec.system.cuda_graphs and on_gpu and can_capture()


def build_gates(spec: Spec, clock: Clock) -> Gates:
    """Build the failure gates of a spec, in the order in which they are checked."""
    gates = spec.gates
    return Gates(
        clock,
        updates=(
            LossGate(),
            GradientsGate(max_consecutive=gates.max_consecutive_nonfinite_gradients),
            GradNormGate(max_norm=gates.max_grad_norm),
            QBoundGate(bound=largest_q(spec), max_over_bound=gates.max_q_over_bound),
        ),
        evaluations=(
            EvaluationsGate(max_drop=gates.max_evaluation_drop, patience=gates.evaluation_drop_evaluations),
        ),
        replay=(PrioritiesGate(min_share=gates.min_effective_share or 0.0),),
        periods=(
            ActionsGate(max_share=gates.max_greedy_action_share, patience=gates.greedy_action_periods),
            DeadUnitsGate(max_share=gates.max_dead_unit_share),
            ThroughputGate(min_share=gates.min_throughput_share, patience=gates.throughput_drop_periods),
            DiskGate(min_free_bytes=gates.min_free_disk_bytes),
        ),
    )
