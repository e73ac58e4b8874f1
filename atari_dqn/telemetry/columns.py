"""Every metric a run reports, declared once: its table, its name, its unit and what it means.

A row must hold exactly the columns of its table, so that no metric is dropped and none appears undeclared.
Tables hold nothing that depends on how fast a machine is, but for `throughput_log`: a resumed run's files are
the same to the byte (see docs/decisions/0002-times-in-a-table-of-their-own.md).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Column:
    """One metric."""

    name: str
    unit: str
    meaning: str


_STEP = Column("step", "agent steps", "over all environments, the prefill included")
_ENV_FRAMES = Column("env_frames", "emulator frames", "step × frame_skip")

TABLES: dict[str, tuple[Column, ...]] = {
    "train_log": (
        _STEP,
        _ENV_FRAMES,
        Column("episode_number", "episodes", "1 for the first that ended"),
        Column("lane", "index", "the environment it was played on"),
        Column("episode_return", "game score", "unclipped, whole game"),
        Column("episode_length_steps", "agent steps", "transitions of the episode"),
        Column("episode_length_frames", "emulator frames", "its steps × frame_skip"),
        Column("end_reason", "word", "game_over or frame_cap"),
        Column("epsilon", "probability", "when it ended"),
    ),
    "update_log": (
        _STEP,
        _ENV_FRAMES,
        Column("updates", "gradient steps", "so far"),
        Column("episodes", "episodes", "ended so far"),
        Column("epsilon", "probability", "at this step"),
        Column("loss", "TD error²", "per transition, mean over the period; empty before learning"),
        Column("mean_q", "discounted clipped reward", "of the taken actions, mean over the period"),
        Column("max_q", "discounted clipped reward", "largest of any action in the period"),
        Column("mean_abs_td_error", "discounted clipped reward", "mean over the period"),
        Column("grad_norm", "norm", "before clipping, mean over the period"),
        Column("max_grad_norm", "norm", "before clipping, largest of the period"),
        Column("replay_transitions", "transitions", "that can be sampled"),
        Column("rolling_return", "game score", "mean of the last rolling_episodes episodes"),
        Column("rolling_length_steps", "agent steps", "mean of the last rolling_episodes episodes"),
    ),
    "replay_log": (
        _STEP,
        _ENV_FRAMES,
        Column(
            "transitions", "transitions", "that can be sampled; the other cells are of these, but where said"
        ),
        Column("terminal_share", "share", "with nothing to bootstrap from: discount 0"),
        Column("non_step_share", "share of stored rows", "that are no step: an episode's last frame"),
        Column("negative_reward_share", "share", "of rewards as stored, clipped"),
        Column("zero_reward_share", "share", "of rewards as stored, clipped"),
        Column("positive_reward_share", "share", "of rewards as stored, clipped"),
        Column(
            "mean_age_steps", "agent steps", "in minibatches drawn for the report; rows since × environments"
        ),
        Column("median_age_steps", "agent steps", "in minibatches drawn for the report"),
        Column("max_age_steps", "agent steps", "in minibatches drawn for the report"),
        Column("min_priority", "p^α", "what a probability is proportional to; 1 under uniform sampling"),
        Column("p10_priority", "p^α", "a tenth is not above it"),
        Column("median_priority", "p^α", "half is not above it"),
        Column("mean_priority", "p^α", "over all transitions"),
        Column("p90_priority", "p^α", "nine tenths are not above it"),
        Column("max_priority", "p^α", "over all transitions"),
        Column(
            "effective_sample_size", "transitions", "(Σ p^α)² / Σ (p^α)²: all of them under uniform sampling"
        ),
        Column("effective_share", "share", "the same over the transitions"),
        Column("beta", "exponent", "of importance weights; 0 under uniform sampling, which has no bias"),
        Column(
            "min_weight", "importance weight", "in minibatches drawn for the report; 1 under uniform sampling"
        ),
        Column("mean_weight", "importance weight", "in minibatches drawn for the report"),
    ),
    "prediction_log": (
        _STEP,
        _ENV_FRAMES,
        Column(
            "action_gap", "discounted clipped reward", "best action's value less the second's; without noise"
        ),
        Column(
            "std_return",
            "discounted clipped reward",
            "predicted spread of taken actions' returns; empty for values",
        ),
        Column("lowest_atom_mass", "probability", "on the support's lower edge, of taken actions; C51 only"),
        Column("highest_atom_mass", "probability", "on the support's upper edge, of taken actions; C51 only"),
        Column("crossed_share", "share", "of neighbouring quantiles in the wrong order; quantiles only"),
    ),
    "eval_log": (
        _STEP,
        _ENV_FRAMES,
        Column("eval_type", "word", "light, full or final"),
        Column("episodes", "episodes", "played"),
        Column("mean_return", "game score", "unclipped"),
        Column("std_return", "game score", "over episodes, with n − 1"),
        Column("median_return", "game score", "unclipped"),
        Column("min_return", "game score", "unclipped"),
        Column("max_return", "game score", "unclipped"),
        Column("mean_length_frames", "emulator frames", "per episode"),
        Column("min_length_frames", "emulator frames", "per episode"),
        Column("max_length_frames", "emulator frames", "per episode"),
        Column("game_overs", "episodes", "ended by the game"),
        Column("frame_caps", "episodes", "ended by the cap"),
        Column("protocol", "hash", "fingerprint of the protocol; provenance.json has its words"),
    ),
    "throughput_log": (
        _STEP,
        _ENV_FRAMES,
        Column("elapsed_seconds", "seconds", "of training, evaluation and saving, over all resumes"),
        Column("frames_per_second", "emulator frames/s", "of training over the period, evaluations left out"),
        Column("updates_per_second", "gradient steps/s", "of training over the period"),
        Column("act_share", "share of training time", "choosing actions"),
        Column("emulate_share", "share of training time", "waiting for emulators"),
        Column("store_share", "share of training time", "copying frames to the replay"),
        Column(
            "sample_share",
            "share of training time",
            "drawing minibatches, taking in their errors; of updates from CUDA graphs a part of learn_share",
        ),
        Column("transfer_share", "share of training time", "moving frames to the learner's device"),
        Column(
            "learn_share", "share of training time", "targets, loss and gradients; on a GPU, waiting for them"
        ),
        Column(
            "optimize_share",
            "share of training time",
            "moving the weights; of updates from CUDA graphs a part of learn_share",
        ),
        Column("other_share", "share of training time", "bookkeeping"),
        Column("emulators_busy_share", "share of training time", "each emulating process played, on average"),
    ),
}

TABLES_ADDED = {"prediction_log"}
"""Tables that came after runs had been made."""


def column_names(table: str) -> tuple[str, ...]:
    """Return the names of a table's columns, in order."""
    return tuple(column.name for column in TABLES[table])
