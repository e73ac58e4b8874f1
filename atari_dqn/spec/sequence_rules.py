"""Rules on the keys of agents that learn from sequences, most of which have memory."""

from __future__ import annotations

from atari_dqn.spec.check import show
from atari_dqn.spec.constraints import AUTO
from atari_dqn.spec.rule import SPARE_ROWS, Rule


def sequence_rows(sequence_steps: int) -> int:
    """Compute the fewest time steps of an environment that always have a whole sequence."""
    return sequence_steps + SPARE_ROWS


SEQUENCE_RULES = (
    Rule(
        ("network.memory", "replay.kind"),
        lambda memory, kind: memory == "none" or kind == "sequences",
        'a recurrent layer learns from sequences: set the second to "sequences"',
    ),
    Rule(
        ("replay.burn_in_steps", "network.memory"),
        lambda burn_in, memory: burn_in == 0 or memory != "none",
        "without a recurrent layer there is no state to burn in: set the first to 0",
        applies_to_existing_runs=False,
    ),
    Rule(
        ("replay.burn_in_steps", "replay.sequence_period_steps"),
        lambda burn_in, period: burn_in <= period,
        "all sequences but an episode's first need a whole burn-in: lower the first or raise the second",
    ),
    Rule(
        ("replay.sequence_period_steps", "replay.sequence_steps"),
        lambda period, steps: period <= steps,
        "the sequences of an episode must hold all of its steps: lower the first or raise the second",
    ),
    Rule(
        ("toggles.n_step", "replay.sequence_steps"),
        lambda n_step, steps: n_step <= steps,
        "n-step returns must fit in a sequence: lower the first or raise the second",
    ),
    Rule(
        ("replay.prefill_steps", "env.num_envs", "replay.sequence_steps"),
        lambda steps, envs, sequence_steps: steps // envs >= sequence_rows(sequence_steps),
        "the prefill must hold a sequence of each environment: raise the first",
    ),
    Rule(
        ("replay.capacity_steps", "env.num_envs", "replay.sequence_steps"),
        lambda steps, envs, sequence_steps: steps // envs >= sequence_rows(sequence_steps),
        "each environment's share of the replay must hold a sequence: raise the first",
    ),
    Rule(
        ("learner.loss", "replay.kind"),
        lambda loss, kind: kind != "sequences" or loss in ("huber", "mse"),
        'the loss of sequences is defined for "huber" and "mse": choose one of them',
    ),
    *(
        Rule(
            (key, "replay.kind"),
            lambda value, kind, plain=plain: kind != "sequences" or value in (plain, AUTO),
            f"it is not defined for sequences: set the first to {show(plain)}",
        )
        for key, plain in (
            ("toggles.distribution", "none"),
            ("toggles.noisy", False),
            ("toggles.random_shifts", False),
            ("toggles.munchausen", False),
            ("learner.compile", False),
            ("system.cuda_graphs", False),
        )
    ),
)
