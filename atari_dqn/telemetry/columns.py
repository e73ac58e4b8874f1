"""Declare every metric that a run reports: its table, name, unit and meaning.

A row must hold exactly the columns of its table, so that no metric is dropped and none appears undeclared.
Only `throughput_log` depends on the speed of the machine: all other files of a resumed run are equal to those
of an uninterrupted run, byte by byte (see docs/decisions/0002-times-in-a-table-of-their-own.md).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Column:
    """One metric of a table."""

    name: str
    unit: str
    meaning: str

    @property
    def is_text(self) -> bool:
        """Whether its cells are text: a word or a fingerprint."""
        return self.unit in ("word", "hash")


_STEP = Column("step", "agent steps", "over all environments, the prefill included")
_ENV_FRAMES = Column("env_frames", "emulator frames", "step × frame_skip")
_RETURN = "discounted reward, clipped to ±learner.max_abs_reward"
_Q_VALUE = f"{_RETURN}; on the scale of h with learner.value_rescaling"

TABLES: dict[str, tuple[Column, ...]] = {
    "train_log": (
        _STEP,
        _ENV_FRAMES,
        Column("episode_number", "episodes", "1 for the first that ended"),
        Column("environment", "index", "the environment in which it was played"),
        Column("episode_return", "game score", "unclipped, whole game"),
        Column("episode_length_steps", "agent steps", "transitions of the episode"),
        Column("episode_length_frames", "emulator frames", "its steps × frame_skip"),
        Column("end_reason", "word", "game_over or frame_cap"),
        Column("epsilon", "probability", "of its environment, when it ended"),
    ),
    "update_log": (
        _STEP,
        _ENV_FRAMES,
        Column("updates", "gradient steps", "so far"),
        Column("episodes", "episodes", "ended so far"),
        Column("epsilon", "probability", "at this step, mean over the environments"),
        Column("loss", "TD error²", "per transition, mean over the period; empty before learning"),
        Column("mean_q", _Q_VALUE, "of the selected actions, mean over the period"),
        Column("max_q", _Q_VALUE, "largest of any action in the period"),
        Column("mean_abs_td_error", _Q_VALUE, "mean over the period"),
        Column("grad_norm", "norm", "before clipping, mean over the period"),
        Column("max_grad_norm", "norm", "before clipping, largest of the period"),
        Column("replay_transitions", "transitions", "that can be sampled"),
        Column("rolling_return", "game score", "mean of the last rolling_episodes episodes, of whatever ε"),
        Column("rolling_length_steps", "agent steps", "mean of the last rolling_episodes episodes"),
    ),
    "replay_log": (
        _STEP,
        _ENV_FRAMES,
        Column(
            "transitions",
            "transitions",
            "that can be sampled; other columns describe these unless stated otherwise",
        ),
        Column(
            "terminal_share",
            "share",
            "with discount 0, that is without bootstrapping; of sequences, among stored steps",
        ),
        Column(
            "non_step_share", "share of stored rows", "that are not transitions: the last frame of an episode"
        ),
        Column("negative_reward_share", "share", "of rewards as stored, clipped"),
        Column("zero_reward_share", "share", "of rewards as stored, clipped"),
        Column("positive_reward_share", "share", "of rewards as stored, clipped"),
        Column(
            "mean_age_steps", "agent steps", "in minibatches drawn for the report; rows since × environments"
        ),
        Column("median_age_steps", "agent steps", "in minibatches drawn for the report"),
        Column("max_age_steps", "agent steps", "in minibatches drawn for the report"),
        Column("min_priority", "p^α", "smallest unnormalised probability; 1 under uniform sampling"),
        Column("p10_priority", "p^α", "10th percentile"),
        Column("median_priority", "p^α", "median"),
        Column("mean_priority", "p^α", "over all transitions"),
        Column("p90_priority", "p^α", "90th percentile"),
        Column("max_priority", "p^α", "over all transitions"),
        Column(
            "effective_sample_size", "transitions", "(Σ p^α)² / Σ (p^α)²: all of them under uniform sampling"
        ),
        Column("effective_share", "share", "effective_sample_size / transitions"),
        Column(
            "beta", "exponent", "of importance weights; 0 under uniform sampling, which needs no correction"
        ),
        Column(
            "min_weight", "importance weight", "in minibatches drawn for the report; 1 under uniform sampling"
        ),
        Column("mean_weight", "importance weight", "in minibatches drawn for the report"),
    ),
    "prediction_log": (
        _STEP,
        _ENV_FRAMES,
        Column("action_gap", _Q_VALUE, "largest minus second largest Q; without parameter noise"),
        Column(
            "std_return",
            _RETURN,
            "standard deviation of the predicted return of the selected action; distributions only",
        ),
        Column("lowest_atom_mass", "probability", "of the lowest atom, for selected actions; C51 only"),
        Column("highest_atom_mass", "probability", "of the highest atom, for selected actions; C51 only"),
        Column("crossed_share", "share", "of neighbouring quantiles in the wrong order; quantiles only"),
    ),
    "memory_log": (
        _STEP,
        _ENV_FRAMES,
        Column("state_norm", "norm", "of the recurrent state after the last frame of a sequence, mean"),
        Column(
            "early_td_error",
            "|TD error|",
            "mean over the first quarter of the steps, in sequences that do not begin an episode",
        ),
        Column(
            "late_td_error",
            "|TD error|",
            "mean over the last quarter, in the same sequences; its n-step returns are shorter",
        ),
        Column(
            "first_delta_q",
            "share of the largest q-value",
            "ΔQ of Kapturowski et al. (2019) at the first frame after the burn-in with a stored state; "
            "stored states only",
        ),
        Column(
            "last_delta_q",
            "share of the largest q-value",
            "ΔQ at the last frame of the sequence with a stored state",
        ),
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
        Column("protocol", "hash", "fingerprint of the protocol, in full in provenance.json or `resumed`"),
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
            "sampling minibatches and updating priorities; with CUDA graphs part of learn_share",
        ),
        Column("transfer_share", "share of training time", "copying frames to the device of the learner"),
        Column(
            "learn_share", "share of training time", "targets, loss and gradients; on a GPU, waiting for them"
        ),
        Column(
            "optimize_share",
            "share of training time",
            "optimizer steps; with CUDA graphs part of learn_share",
        ),
        Column("other_share", "share of training time", "bookkeeping"),
        Column(
            "emulators_busy_share",
            "share of training time",
            "mean over emulator processes of the share of time spent emulating; empty with actors",
        ),
    ),
}

TABLES_ADDED = {"prediction_log", "memory_log"}
"""Tables that runs of earlier versions do not have."""

FORMER_NAMES = {"lane": "environment"}
"""Current column names, by their name in earlier versions. A table with former names keeps its header."""


def former_column_names(table: str) -> tuple[str, ...]:
    """Return the column names of a table, in order, under the names of earlier versions."""
    former = {current: name for name, current in FORMER_NAMES.items()}
    return tuple(former.get(name, name) for name in column_names(table))


def column_names(table: str) -> tuple[str, ...]:
    """Return the column names of a table, in order."""
    return tuple(column.name for column in TABLES[table])
