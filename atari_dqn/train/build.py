"""Build a training and its failure gates from a complete spec."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch

from atari_dqn.assembly.acceleration import Backend, can_capture, make_backend
from atari_dqn.assembly.data_efficient_parts import acting_network, horizon_of, make_redo
from atari_dqn.assembly.parts import build_actor, build_learner, build_probes, build_replay, initial_network
from atari_dqn.clock import Clock, frames_to_steps, steps_to_frames
from atari_dqn.envs.games import make_envs
from atari_dqn.machine.allocator import keep_freed_memory
from atari_dqn.machine.devices import check_precision, make_current, set_kernels
from atari_dqn.spec.constraints import decided, given
from atari_dqn.spec.exploration import exploration_of
from atari_dqn.spec.schema import Spec
from atari_dqn.telemetry.gates.evaluation_gate import EvaluationsGate
from atari_dqn.telemetry.gates.gate_set import Gates
from atari_dqn.telemetry.gates.period_gates import ActionsGate, DeadUnitsGate, DiskGate, ThroughputGate
from atari_dqn.telemetry.gates.replay_gate import PrioritiesGate
from atari_dqn.telemetry.gates.update_gates import GradientsGate, GradNormGate, LossGate, QBoundGate
from atari_dqn.train.metrics_ring import MetricsRing
from atari_dqn.train.reporter import Reporter
from atari_dqn.train.rollout_training import RolloutTraining
from atari_dqn.train.stopwatch import Stopwatch
from atari_dqn.train.training import Training
from atari_dqn.types import Environments


def assemble(spec: Spec, device: torch.device) -> Training:
    """Build the training of a spec, for which the number of torch's threads is set in this process.

    The caller closes the training, which stops its worker processes.
    """
    check_precision(decided(spec.learner.precision), device)
    make_current(device)
    set_kernels(device, threads=decided(spec.learner.threads), deterministic=spec.learner.deterministic)
    keep_freed_memory()
    envs = make_envs(
        game=spec.game,
        env=spec.env,
        num_envs=spec.env.num_envs,
        seed=spec.seed,
        stream="training",
        workers=decided(spec.system.workers),
    )
    try:
        backend = make_backend(device, compiled=decided(spec.learner.compile))
        with backend.compiling():
            training = _training(spec, device, envs, backend)
            training.compile()
            return training
    except BaseException:
        envs.close()
        raise


def _training(spec: Spec, device: torch.device, envs: Environments, backend: Backend) -> Training:
    env, skip = spec.env, spec.env.frame_skip
    clock = Clock(frame_skip=skip, prefill_steps=spec.replay.prefill_steps)
    learner = build_learner(spec, envs.info, device, backend)
    replay = build_replay(spec, envs.info, device, backend)
    metrics = MetricsRing(
        batch_size=spec.learner.batch_size,
        device=device,
        updates_per_iteration=-(-_steps_at_once(spec) // spec.learner.update_period_steps)
        * spec.learner.updates_per_period,
    )
    training = _training_type(spec)(
        clock=clock,
        exploration=exploration_of(spec),
        total_steps=frames_to_steps(spec.training.total_frames, frame_skip=skip),
        update_period_steps=spec.learner.update_period_steps,
        updates_per_period=spec.learner.updates_per_period,
        update_frames=steps_to_frames(spec.learner.update_period_steps + env.num_envs - 1, frame_skip=skip),
        terminal_on_life_loss=env.terminal_on_life_loss,
        device=device,
        backend=backend,
        envs=envs,
        replay=replay,
        actor=build_actor(spec, envs, acting_network(spec, learner), device),
        learner=learner,
        horizon=horizon_of(spec),
        probes=build_probes(spec),
        metrics=metrics,
        reporter=Reporter(
            clock,
            envs=env.num_envs,
            update_period_steps=spec.logging.update_period_steps,
            rolling_episodes=spec.logging.rolling_episodes,
            updates=metrics.reader(),
        ),
        stopwatch=Stopwatch(),
        captured=uses_graphs(spec, device, replay_on=replay.ring.device),
    )
    if spec.toggles.redo:
        fresh = partial(initial_network, spec, envs.info, "redo")
        report = training.recycled.append
        redo = make_redo(spec, learner, states=training.sample_states, fresh=fresh, report=report)
        learner.upkeep.append(redo)
    return training


def _training_type(spec: Spec) -> Callable[..., Training]:
    """Return the constructor of a training that learns from a replay, or from rollouts."""
    if spec.replay.kind != "rollouts":
        return Training
    return partial(
        RolloutTraining,
        gamma=spec.learner.discount,
        trace_decay=given(spec.learner.trace_decay),
        updates_per_rollout=spec.replay.capacity_steps // spec.learner.update_period_steps,
    )


def _steps_at_once(spec: Spec) -> int:
    """Return the number of steps whose updates are made in one iteration."""
    return spec.replay.capacity_steps if spec.replay.kind == "rollouts" else spec.env.num_envs


def uses_graphs(spec: Spec, device: torch.device, *, replay_on: torch.device) -> bool:
    """Return whether acting and updates are captured: if set in the spec and if the replay is on the GPU.

    Updates on rollouts are not captured yet, nor are those whose n and γ change.
    """
    can_repeat = spec.replay.kind != "rollouts" and not spec.toggles.annealing
    return (
        spec.system.cuda_graphs
        and can_repeat
        and device.type == "cuda"
        and replay_on == device
        and can_capture()
    )


def build_gates(spec: Spec, clock: Clock) -> Gates:
    """Build the failure gates of a spec, in the order in which they are checked."""
    gates = spec.gates
    return Gates(
        clock,
        updates=(
            LossGate(),
            GradientsGate(max_consecutive=gates.max_consecutive_nonfinite_gradients),
            GradNormGate(max_norm=gates.max_grad_norm),
            QBoundGate(
                max_abs_reward=spec.learner.max_abs_reward,
                discount=spec.learner.discount,
                max_over_bound=gates.max_q_over_bound,
            ),
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
