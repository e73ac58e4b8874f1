"""Rules on the keys of agents with self-prediction, resets or annealing, which learn much from few frames."""

from __future__ import annotations

from atari_dqn.clock import frames_to_steps
from atari_dqn.spec.rule import SPARE_ROWS, Rule


def _acts_with_another(acting: str, period_updates: int, rate: float) -> bool:
    """Return whether the network that acts is the online one, or one that differs from it."""
    return acting == "online" or period_updates > 1 or rate < 1.0


def _resets_before_budget(
    reset_period_updates: int,
    updates_per_period: int,
    update_period_steps: int,
    prefill_steps: int,
    envs: int,
    frame_skip: int,
    total_frames: int,
) -> bool:
    """Return whether a run has updates after its first reset, unless another rule refuses its prefill."""
    total_steps = frames_to_steps(total_frames, frame_skip=frame_skip)
    last_steps = (total_steps - 1) // envs * envs  # those before the last iteration, which may still learn
    learning_steps = last_steps - prefill_steps
    return (
        learning_steps <= 0
        or reset_period_updates < learning_steps // update_period_steps * updates_per_period
    )


def _holds(steps: int, envs: int, window_steps: int) -> bool:
    return steps // envs >= window_steps + SPARE_ROWS


def _holds_with_stack(steps: int, envs: int, stack: int, window_steps: int) -> bool:
    return _holds(steps, envs, stack + window_steps)


DATA_EFFICIENT_RULES = (
    Rule(
        ("learner.acting_network", "learner.target_period_updates", "learner.target_rate"),
        _acts_with_another,
        'a target network that is copied after every update is the online network: set the first to "online"',
    ),
    Rule(
        ("learner.reset_period_updates", "learner.reset_last_updates"),
        lambda period, last: period <= last,
        "there would be no reset: lower the first, raise the second, or turn toggles.resets off",
    ),
    Rule(
        (
            "learner.reset_period_updates",
            "learner.updates_per_period",
            "learner.update_period_steps",
            "replay.prefill_steps",
            "env.num_envs",
            "env.frame_skip",
            "training.total_frames",
        ),
        _resets_before_budget,
        "the run would end before its first reset: lower the first, raise training.total_frames, or turn "
        "toggles.resets off",
        applies_to_existing_runs=False,
    ),
    Rule(
        ("learner.reset_keep", "learner.reset_perturb"),
        lambda keep, perturb: keep + perturb > 0,
        "with both 0 the encoder's weights would all be 0: raise one",
    ),
    Rule(
        ("learner.n_step_start", "toggles.n_step"),
        lambda start, end: start >= end,
        "n is annealed downwards: raise the first or lower the second",
    ),
    Rule(
        ("learner.discount_start", "learner.discount"),
        lambda start, end: start <= end < 1,
        "γ is annealed upwards, and stays below 1: change one of them",
    ),
    *(
        rule
        for key in ("learner.n_step_start", "learner.self_prediction_steps")
        for rule in (
            Rule(
                ("replay.prefill_steps", "env.num_envs", key),
                _holds,
                "the prefill must hold so many steps of each environment: raise the first",
            ),
            Rule(
                ("replay.capacity_steps", "env.num_envs", "env.stack_frames", key),
                _holds_with_stack,
                "each environment's share of the replay must hold a frame stack and so many steps: raise the "
                "first",
            ),
        )
    ),
    *(
        Rule(
            (f"toggles.{toggle}", "replay.kind"),
            lambda on, kind: not on or kind != "sequences",
            "it is not defined for sequences: turn it off",
            applies_to_existing_runs=toggle != "redo",  # those that have it are still read
        )
        for toggle in ("self_prediction", "annealing", "redo")
    ),
    Rule(
        ("toggles.resets", "network.memory"),
        lambda resets, memory: not resets or memory == "none",
        "it is not defined for networks with memory, whose states the replay holds: set the first to false",
        applies_to_existing_runs=False,
    ),
    Rule(
        ("system.cuda_graphs", "toggles.annealing"),
        lambda graphs, annealing: not (graphs and annealing),
        "a captured update repeats one n and one γ: set the first to false",
    ),
    *(
        Rule(
            ("toggles.redo", key),
            lambda on, value, plain=plain: not on or value in plain,
            f"it is defined for plain layers in a row: turn it off, or set the second to {plain[0]!r}",
        )
        for key, plain in (
            ("network.kind", ("nature", "dopamine", "data_efficient")),
            ("network.memory", ("none",)),
            ("toggles.distribution", ("none", "c51", "hl_gauss", "qr_dqn")),
            ("toggles.noisy", (False,)),
            ("toggles.self_prediction", (False,)),
        )
    ),
    Rule(
        ("replay.prefill_steps", "learner.redo_states"),
        lambda prefill, states: prefill >= states,
        "the prefill must hold so many states: raise the first or lower the second",
    ),
    Rule(
        ("toggles.self_prediction", "toggles.distribution"),
        lambda on, distribution: not on or distribution != "iqn",
        "no paper combines it with quantiles at sampled fractions: turn it off, or choose another",
    ),
)
