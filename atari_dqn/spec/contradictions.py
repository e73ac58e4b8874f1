"""Rules on combinations of keys: values that are valid each on their own but contradict each other."""

from __future__ import annotations

import math
from collections.abc import Iterator

from atari_dqn.clock import frames_to_steps, steps_to_frames
from atari_dqn.spec.actor_rules import ACTOR_RULES
from atari_dqn.spec.data_efficient_rules import DATA_EFFICIENT_RULES
from atari_dqn.spec.exploration_rules import EXPLORATION_RULES
from atari_dqn.spec.games import game_problem
from atari_dqn.spec.keys import Values
from atari_dqn.spec.network_rules import NETWORK_RULES
from atari_dqn.spec.rollout_rules import ROLLOUT_RULES
from atari_dqn.spec.rule import SPARE_ROWS, Rule
from atari_dqn.spec.sequence_rules import SEQUENCE_RULES
from atari_dqn.spec.size_rules import SIZE_RULES

_ROUNDING = 1e-9
"""The relative error of 1 / (1 − discount), so that a support as wide as the largest return is valid."""


def _prefill_ends_before_budget(prefill_steps: int, frame_skip: int, total_frames: int) -> bool:
    return steps_to_frames(prefill_steps, frame_skip=frame_skip) < total_frames


def _updates_before_budget(
    period_steps: int, prefill_steps: int, envs: int, frame_skip: int, total_frames: int, replay: str
) -> bool:
    """Return whether a run makes an update, unless another rule refuses its prefill or its rollouts."""
    total_steps = frames_to_steps(total_frames, frame_skip=frame_skip)
    last_steps = (total_steps - 1) // envs * envs  # those before the last iteration, which may still learn
    return replay == "rollouts" or prefill_steps >= total_steps or prefill_steps + period_steps <= last_steps


def window_rows(stack_frames: int, n_step: int) -> int:
    """Compute the fewest time steps of an environment among which one always starts a transition."""
    return stack_frames + n_step + SPARE_ROWS


def _holds_a_window(capacity_steps: int, envs: int, stack_frames: int, n_step: int, replay: str) -> bool:
    return replay == "rollouts" or capacity_steps // envs >= window_rows(stack_frames, n_step)


def _holds_a_transition(prefill_steps: int, envs: int, n_step: int, replay: str) -> bool:
    return replay == "rollouts" or prefill_steps // envs >= n_step + SPARE_ROWS


def _support_fits_rewards(v_max: float, v_min: float, max_abs_reward: float, discount: float) -> bool:
    bound = max_abs_reward / (1 - discount) if discount < 1 else math.inf
    narrowest = 0.0 if math.isinf(max_abs_reward) else max_abs_reward
    return narrowest <= max(v_max, -v_min) <= bound * (1 + _ROUNDING)


def _root_is_real(gradient_decay: float, squared_gradient_decay: float) -> bool:
    """Return whether n − g² of `deepmind_rmsprop` is at least 0 for all gradients, but for rounding.

    After t steps g = Σ aₖ dₖ and n = Σ bₖ dₖ², where the gradient of k steps ago has the weights
    aₖ = (1 − ρ₁) ρ₁ᵏ and bₖ = (1 − ρ₂) ρ₂ᵏ. By Cauchy and Schwarz g² ≤ (Σ aₖ² / bₖ) n, with equality for
    dₖ ∝ aₖ / bₖ. Therefore n − g² can be negative if and only if Σ aₖ² / bₖ exceeds 1 for some t.
    - If ρ₁ = ρ₂ = ρ, the sum is 1 − ρᵗ, which is never above 1.
    - If ρ₁ = 1, the sum is 0, and so is g.
    - Otherwise, if ρ₁² < ρ₂ < 1, the sum tends to (1 − ρ₁)² ρ₂ / ((1 − ρ₂)(ρ₂ − ρ₁²)). This is above 1 if and
      only if (ρ₁ − ρ₂)² > 0, which is always so. If ρ₁² ≥ ρ₂, the sum is unbounded; if ρ₂ = 1, n stays 0.
    """
    return gradient_decay in (squared_gradient_decay, 1.0)


RULES = (
    Rule(
        ("replay.prefill_steps", "replay.capacity_steps"),
        lambda prefill, capacity: prefill <= capacity,
        "the prefill must fit in the replay: lower the first or raise the second",
    ),
    Rule(
        ("replay.prefill_steps", "learner.batch_size"),
        lambda prefill, batch: prefill >= batch,
        "the prefill must hold a minibatch: raise the first or lower the second",
    ),
    Rule(
        ("learner.accumulate", "learner.batch_size"),
        lambda accumulate, batch: batch % accumulate == 0,
        "the parts of a minibatch must be equal: make the first a divisor of the second",
    ),
    Rule(
        ("replay.prefill_steps", "env.frame_skip", "training.total_frames"),
        _prefill_ends_before_budget,
        "the prefill must end before the last frame of the run: lower the first or raise the last",
    ),
    Rule(
        (
            "learner.update_period_steps",
            "replay.prefill_steps",
            "env.num_envs",
            "env.frame_skip",
            "training.total_frames",
            "replay.kind",
        ),
        _updates_before_budget,
        "the run would end before its first update: lower the first or the second, or raise "
        "training.total_frames",
        applies_to_existing_runs=False,
    ),
    Rule(
        ("replay.prefill_steps", "env.num_envs", "toggles.n_step", "replay.kind"),
        _holds_a_transition,
        "the prefill must hold a complete n-step transition of each environment: raise the first",
    ),
    Rule(
        ("replay.capacity_steps", "env.num_envs", "env.stack_frames", "toggles.n_step", "replay.kind"),
        _holds_a_window,
        "each environment's share of the replay must hold a frame stack and n steps: raise the first",
    ),
    *EXPLORATION_RULES,
    Rule(
        ("replay.beta_start", "replay.beta_end"),
        lambda start, end: start <= end,
        "β must not fall: lower the first or raise the second",
    ),
    Rule(
        ("learner.shift_pixels", "learner.intensity_scale"),
        lambda pixels, scale: pixels > 0 or scale > 0,
        "with both 0 random shifts change nothing: raise one, or turn toggles.random_shifts off",
    ),
    Rule(
        ("learner.shift_pixels", "env.screen_size_pixels"),
        lambda pixels, size: pixels < size,
        "a shift must be smaller than the frame: lower the first",
    ),
    Rule(
        ("evaluation.light_episodes", "evaluation.full_episodes"),
        lambda light, full: light <= full,
        "a light evaluation plays the first episodes of a full one: lower the first or raise the second",
    ),
    Rule(
        ("env.noop_max_frames", "env.max_episode_frames"),
        lambda noop, cap: noop < cap,
        "no-op frames must leave some of the episode: lower the first or raise the second",
    ),
    Rule(
        ("env.noop_max_frames", "evaluation.max_episode_frames"),
        lambda noop, cap: noop < cap,
        "no-op frames must leave some of the episode: lower the first or raise the second",
    ),
    Rule(
        ("env.frame_skip", "env.max_episode_frames"),
        lambda skip, cap: skip <= cap,
        "an episode must hold a step: lower the first or raise the second",
    ),
    Rule(
        ("env.frame_skip", "evaluation.max_episode_frames"),
        lambda skip, cap: skip <= cap,
        "an episode must hold a step: lower the first or raise the second",
    ),
    Rule(
        ("optimizer.gradient_decay", "optimizer.squared_gradient_decay"),
        _root_is_real,
        "RMSProp's variance n − g² could be negative: make them equal, or set the first to 1 to leave the "
        "mean gradient out",
        applies_to_existing_runs=False,
    ),
    Rule(
        ("distribution.v_min", "distribution.v_max"),
        lambda low, high: low < high,
        "the support must not be empty: lower the first or raise the second",
    ),
    Rule(
        ("distribution.v_max", "distribution.v_min", "learner.max_abs_reward", "learner.discount"),
        _support_fits_rewards,
        "the larger of v_max and −v_min must be at least one clipped reward, and at most the largest return "
        "of clipped rewards, max_abs_reward / (1 − discount): change the support",
    ),
    Rule(
        ("toggles.munchausen", "toggles.double"),
        lambda munchausen, double: not (munchausen and double),
        "the target of Munchausen uses the soft policy and no paper combines it with Double: turn one off",
    ),
    Rule(
        ("toggles.munchausen", "toggles.distribution"),
        lambda munchausen, distribution: not munchausen or distribution in ("none", "iqn"),
        'Vieillard et al. (2020) define it only for "none" and "iqn": turn it off, or choose one of these',
    ),
    *(
        Rule(
            ("toggles.distribution", f"toggles.{toggle}"),
            lambda distribution, on: distribution != "qr_dqn" or not on,
            f'no paper combines QR-DQN with it: turn {toggle} off, or choose "iqn"',
        )
        for toggle in ("double", "dueling", "noisy")
    ),
    *NETWORK_RULES,
    *SEQUENCE_RULES,
    *DATA_EFFICIENT_RULES,
    *ROLLOUT_RULES,
    *ACTOR_RULES,
    *SIZE_RULES,
)


def contradictions(values: Values, *, is_existing_run: bool = False) -> Iterator[tuple[str, str]]:
    """Yield the first key of each contradiction and a description of it.

    Rules on keys without a value are skipped. With `is_existing_run`, so are the rules that apply to new runs
    only.
    """
    if "game" in values:
        kind = values.get("env.kind")
        problem = game_problem(str(values["game"]), kind=None if kind is None else str(kind))
        if problem is not None:
            yield "game", problem
    for rule in RULES:
        problem = rule.problem(values) if rule.applies_to_existing_runs or not is_existing_run else None
        if problem is not None:
            yield rule.keys[0], problem
