"""Rules on the keys of actors, without which actors and learner could wait for each other for ever."""

from __future__ import annotations

from atari_dqn.spec.check import show
from atari_dqn.spec.constraints import AUTO
from atari_dqn.spec.rule import Rule


def _holds_a_message(buffer_steps: int, fragment_steps: int, envs: int, processes: int) -> bool:
    return buffer_steps >= fragment_steps * envs // processes


ACTOR_RULES = (
    Rule(
        ("env.num_envs", "actors.processes"),
        lambda envs, processes: envs % processes == 0,
        "every actor plays as many environments: make the first a multiple of the second",
    ),
    Rule(
        ("actors.error_buffer_steps", "learner.update_period_steps"),
        lambda buffer, period: buffer >= period,
        "the buffer must hold the steps of one update, or the learner would wait for ever: raise the first",
    ),
    Rule(
        ("actors.error_buffer_steps", "actors.fragment_steps", "env.num_envs", "actors.processes"),
        _holds_a_message,
        "the buffer must hold the steps of one message, or actors would wait for ever: raise the first or "
        "lower the second",
    ),
    Rule(
        ("actors.publish_period_updates", "actors.max_lag_updates"),
        lambda period, lag: period <= lag,
        "weights must be published before those of actors are too old: lower the first or raise the second",
    ),
    Rule(
        ("system.workers", "actors.processes"),
        lambda workers, _: workers in (0, AUTO),
        "actors step their environments themselves: set the first to 0",
    ),
    Rule(
        ("replay.kind", "actors.processes"),
        lambda kind, _: kind != "rollouts",
        'all environments of a rollout act with the same weights: set actors.mode = "none"',
    ),
    Rule(
        ("checkpoint.replay", "actors.mode"),
        lambda saved, mode: saved or mode != "lockstep",
        "a run in lockstep resumes exactly, for which it needs its replay: set the first to true",
        applies_to_existing_runs=False,
    ),
    *(
        Rule(
            (key, "actors.processes"),
            lambda value, _, plain=plain: value in (plain, AUTO),
            f"it is not defined for actors: set the first to {show(plain)}",
        )
        for key, plain in (
            ("learner.compile", False),
            ("system.cuda_graphs", False),
            ("learner.acting_network", "online"),
            ("toggles.annealing", False),
            ("toggles.self_prediction", False),
        )
    ),
)
