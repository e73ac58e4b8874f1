"""Compute statistics of a replay's contents and of its sampling, without changing its state."""

from __future__ import annotations

import math

from jaxtyping import Float64, Int64
from torch import Tensor

from atari_dqn.minibatch import Batch
from atari_dqn.replay.sampling import Sampling

MINIBATCHES = 128
"""Number of minibatches sampled for a report: 4,096 transitions at a batch size of 32."""

_NAMES = (
    "terminal_share", "non_step_share", "negative_reward_share", "zero_reward_share", "positive_reward_share",
    "mean_age_steps", "median_age_steps", "max_age_steps",
    "min_priority", "p10_priority", "median_priority", "mean_priority", "p90_priority", "max_priority",
    "effective_sample_size", "effective_share", "beta", "min_weight", "mean_weight",
)  # fmt: skip


def replay_report(replay: Sampling[Batch], *, env_frames: int, seed: int) -> dict[str, float | int]:
    """Compute statistics of contents, ages, priorities and weights; NaN if no transition can be sampled.

    Ages and weights are those of minibatches that are sampled for the report from a stream of `seed`, not
    from the sampler's stream, with β at `env_frames`.
    """
    count = {"transitions": replay.num_transitions}
    if not replay.num_transitions:
        return count | dict.fromkeys(_NAMES, math.nan)
    sampler = replay.sampler
    indices, weights = replay.sample_for_diagnostics(MINIBATCHES, env_frames=env_frames, seed=seed)
    return {
        **count,
        **_contents(replay, replay.steps_to_report().to(sampler.device)),
        **_ages(replay, indices.flatten()),
        **_priorities(sampler.priorities()),
        "beta": sampler.beta_at(env_frames),
        "min_weight": weights.min().item(),
        "mean_weight": weights.double().mean().item(),
    }


def _contents(replay: Sampling[Batch], indices: Int64[Tensor, "n"]) -> dict[str, float]:
    reward = replay.ring.reward[indices]
    return {
        "terminal_share": _share(replay.ring.discount[indices] == 0),
        "non_step_share": 1 - replay.step_share(),
        "negative_reward_share": _share(reward < 0),
        "zero_reward_share": _share(reward == 0),
        "positive_reward_share": _share(reward > 0),
    }


def _ages(replay: Sampling[Batch], indices: Int64[Tensor, "n"]) -> dict[str, float]:
    steps = replay.age_steps(indices).double()
    return {
        "mean_age_steps": steps.mean().item(),
        "median_age_steps": steps.median().item(),
        "max_age_steps": steps.max().item(),
    }


def _priorities(priorities: Float64[Tensor, "n"]) -> dict[str, float]:
    """Compute quantiles (of the next lower rank) and (Σp)² / Σp², Kish's effective sample size."""
    ordered, last = priorities.sort().values, len(priorities) - 1
    low, tenth, median, nine_tenths, high = (
        ordered[int(last * share)].item() for share in (0.0, 0.1, 0.5, 0.9, 1.0)
    )
    total, squares = ordered.sum(), ordered.square().sum()
    effective = (total.square() / squares).item()
    return {
        "min_priority": low,
        "p10_priority": tenth,
        "median_priority": median,
        "mean_priority": ordered.mean().item(),
        "p90_priority": nine_tenths,
        "max_priority": high,
        "effective_sample_size": effective,
        "effective_share": effective / len(priorities),
    }


def _share(flags: Tensor) -> float:
    return flags.double().mean().item()
