"""Rules on the keys of exploration: ε of all environments, and the noisy layers that take its place."""

from __future__ import annotations

from atari_dqn.spec.rule import Rule

_LARGEST_GREEDY_EPSILON = 0.1
"""The largest final ε of a published agent, that of Mnih et al. (2015)."""

EXPLORATION_RULES = (
    Rule(
        ("exploration.epsilon_start", "exploration.epsilon_end"),
        lambda start, end: start >= end,
        "ε must not rise: raise the first or lower the second",
    ),
    Rule(
        ("toggles.noisy", "exploration.epsilon_off_frames"),
        lambda noisy, off_frames: noisy or off_frames == 0,
        "without noisy layers only ε explores: set the second to 0",
        applies_to_existing_runs=False,
    ),
    Rule(
        ("exploration.epsilon_off_frames", "exploration.epsilon_start", "exploration.epsilon_end"),
        lambda off_frames, start, end: off_frames == 0 or start > 0 or end > 0,
        "ε is 0 anyway: set the first to 0",
        applies_to_existing_runs=False,
    ),
    Rule(
        ("exploration.spectrum_base", "env.num_envs"),
        lambda _, envs: envs > 1,
        'a spectrum of ε needs several environments: raise the second, or set exploration.kind = "linear"',
    ),
    Rule(
        ("exploration.spectrum_base", "exploration.spectrum_exponent"),
        lambda base, exponent: base ** (1 + exponent) <= _LARGEST_GREEDY_EPSILON,
        f"the last environment must be greedy enough, base^(1 + exponent) ≤ {_LARGEST_GREEDY_EPSILON}: lower "
        "the first or raise the second",
    ),
    Rule(
        ("toggles.noisy", "exploration.kind"),
        lambda noisy, kind: not noisy or kind == "linear",
        'noisy layers replace ε-greedy exploration: set exploration.kind = "linear"',
    ),
    Rule(
        ("toggles.noisy", "exploration.epsilon_start", "exploration.epsilon_end", "track"),
        lambda noisy, start, end, track: not noisy or track in "CD" or start == end == 0,
        "noisy layers replace ε-greedy exploration: set both to 0 (only papers of Tracks C and D use both)",
    ),
    Rule(
        ("toggles.noisy", "exploration.epsilon_start", "exploration.epsilon_end"),
        lambda noisy, start, end: noisy or start > 0 or end > 0,
        "without noisy layers only ε explores: raise it, for instance exploration.epsilon_start=1.0, "
        "exploration.epsilon_end=0.01 and evaluation.epsilon=0.001",
        applies_to_existing_runs=False,
    ),
)
