"""Rules on the keys of agents that learn from rollouts. Gallici et al. (2025)."""

from __future__ import annotations

from typing import Any

from atari_dqn.clock import frames_to_steps
from atari_dqn.spec.check import show
from atari_dqn.spec.constraints import AUTO
from atari_dqn.spec.rule import Rule


def _only(key: str, plain: Any, reason: str) -> Rule:
    """Make the rule that a key has one value with rollouts."""
    return Rule(
        (key, "replay.kind"),
        lambda value, kind: kind != "rollouts" or value in (plain, AUTO),
        f"{reason}: set the first to {show(plain)}",
    )


def _multiple(key: str, of: str, reason: str) -> Rule:
    """Make the rule that a key is a multiple of another with rollouts."""
    return Rule(
        (key, of, "replay.kind"),
        lambda value, divisor, kind: kind != "rollouts" or value % divisor == 0,
        f"{reason}: make the first a multiple of the second",
    )


def _completes_a_rollout(
    capacity_steps: int, envs: int, frame_skip: int, total_frames: int, replay: str
) -> bool:
    """Return whether the budget is enough for a rollout: capacity_steps / envs steps of each environment."""
    total_steps = frames_to_steps(total_frames, frame_skip=frame_skip)
    return replay != "rollouts" or capacity_steps // envs <= -(-total_steps // envs)


ROLLOUT_RULES = (
    *(
        _only(key, plain, "it is not supported with rollouts")
        for key, plain in (
            ("toggles.double", False),
            ("toggles.prioritized", False),
            ("toggles.n_step", 1),
            ("toggles.noisy", False),
            ("toggles.distribution", "none"),
            ("toggles.random_shifts", False),
            ("toggles.munchausen", False),
            ("toggles.self_prediction", False),
            ("toggles.resets", False),
            ("toggles.annealing", False),
            ("toggles.redo", False),
            ("learner.updates_per_period", 1),
            ("learner.target_rate", 1.0),
            ("learner.acting_network", "online"),
            ("learner.compile", False),
            ("system.cuda_graphs", False),
        )
    ),
    _only("learner.target_period_updates", 1, "learning from rollouts has no target network"),
    _multiple(
        "replay.capacity_steps", "env.num_envs", "a rollout has equally many steps of each environment"
    ),
    Rule(
        ("replay.capacity_steps", "env.num_envs", "env.frame_skip", "training.total_frames", "replay.kind"),
        _completes_a_rollout,
        "the run would end before its first update, which follows a rollout: lower the first or raise "
        "training.total_frames",
        applies_to_existing_runs=False,
    ),
    _multiple("replay.capacity_steps", "learner.batch_size", "the minibatches of a rollout must be equal"),
    _multiple(
        "learner.batch_size",
        "learner.update_period_steps",
        "the number of passes over a rollout, batch_size / update_period_steps, must be whole",
    ),
)
